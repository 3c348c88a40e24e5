/** The anchors of a page as GitHub makes them from its headings; a repeated heading gets a number. */
export function anchorsOf(page: string): Set<string> {
  const anchors = new Set<string>();
  const text = page.replaceAll(/^```[^]*?^```/gm, '');
  for (const [, heading = ''] of text.matchAll(/^#{1,6} +(.+?) *#*$/gm)) {
    const slug = heading
      .replaceAll(/\[([^\]]*)\]\([^)]*\)/g, '$1')
      .toLowerCase()
      .replaceAll(/[^\p{L}\p{N}\p{M} _-]/gu, '')
      .replaceAll(' ', '-');
    let anchor = slug;
    for (let repeated = 1; anchors.has(anchor); repeated += 1) anchor = `${slug}-${repeated}`;
    anchors.add(anchor);
  }
  return anchors;
}
