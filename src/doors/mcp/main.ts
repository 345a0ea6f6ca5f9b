/** What `leasehold mcp` loads. */
export { mcpHandler } from './http.ts'
