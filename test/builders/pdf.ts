/** Small PDFs, written by hand. */

export interface PdfExtras {
  title?: string;
  /** One more page, whose content is these bytes under that filter. */
  packed?: Buffer;
  filter?: string;
  /** Entries of the trailer, such as `/Encrypt`. */
  trailer?: string;
}

/** A PDF with one page for each list of lines. */
export function pdfOf(pages: readonly (readonly string[])[], extras: PdfExtras = {}): Buffer {
  const contents = pages.map((lines) => {
    const shown = lines.map((line) => `(${line}) Tj T*`).join(' ');
    return streamOf(Buffer.from(`BT /F1 12 Tf 14 TL 72 720 Td ${shown} ET`));
  });
  if (extras.packed !== undefined) contents.push(streamOf(extras.packed, `/Filter ${extras.filter ?? ''}`));
  const pageNumber = (index: number) => 5 + 2 * index;
  const kids = contents.map((_content, index) => `${pageNumber(index)} 0 R`).join(' ');
  const objects = [
    '<< /Type /Catalog /Pages 2 0 R >>',
    `<< /Type /Pages /Kids [${kids}] /Count ${contents.length} >>`,
    '<< /Type /Font /Subtype /Type1 /BaseFont /Helvetica >>',
    `<< /Title (${extras.title ?? ''}) >>`,
    ...contents.flatMap((content, index) => [
      `<< /Type /Page /Parent 2 0 R /MediaBox [0 0 612 792] /Resources << /Font << /F1 3 0 R >> >> /Contents ${pageNumber(index) + 1} 0 R >>`,
      content,
    ]),
  ].map((body, index) =>
    Buffer.concat([Buffer.from(`${index + 1} 0 obj\n`), Buffer.from(body), Buffer.from('\nendobj\n')]),
  );
  const parts = [Buffer.from('%PDF-1.4\n')];
  const places = objects.map((object) => {
    const place = parts.reduce((sum, part) => sum + part.length, 0);
    parts.push(object);
    return `${String(place).padStart(10, '0')} 00000 n \n`;
  });
  const start = parts.reduce((sum, part) => sum + part.length, 0);
  const size = objects.length + 1;
  const table = `xref\n0 ${size}\n0000000000 65535 f \n${places.join('')}`;
  const trailer = `trailer\n<< /Size ${size} /Root 1 0 R /Info 4 0 R ${extras.trailer ?? ''} >>\nstartxref\n${start}\n%%EOF`;
  return Buffer.concat([...parts, Buffer.from(table + trailer)]);
}

function streamOf(content: Buffer, filter = ''): Buffer {
  const head = `<< /Length ${content.length} ${filter} >>\nstream\n`;
  return Buffer.concat([Buffer.from(head), content, Buffer.from('\nendstream')]);
}
