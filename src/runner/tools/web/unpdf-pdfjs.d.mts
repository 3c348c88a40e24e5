/** What is used of PDF.js, in the build that unpdf makes for places without a browser: its own types are those of a browser. */
declare module 'unpdf/pdfjs' {
  interface PdfTextContent {
    /** Marks of structure among them have no text. */
    items: readonly { str?: string; hasEOL?: boolean }[];
  }

  interface PdfDocument {
    numPages: number;
    getPage(number: number): Promise<{ getTextContent(): Promise<PdfTextContent>; cleanup(): void }>;
    getMetadata(): Promise<{ info: Readonly<Record<string, unknown>> }>;
  }

  interface PdfOptions {
    data: Uint8Array;
    verbosity: number;
    useSystemFonts: boolean;
    disableFontFace: boolean;
  }

  export function getDocument(options: PdfOptions): { promise: Promise<PdfDocument> };
}
