/** What `leasehold mcp` loads: everything that other commands do without. */
export { serveMcp } from './stdio.ts'
