/** Version of the product, shown to MCP clients. A test keeps it equal to package.json. */
export const PRODUCT_VERSION = '0.1.0';
