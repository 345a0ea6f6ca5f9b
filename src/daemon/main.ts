/** What `leasehold serve` loads: everything that other commands do without. */
export { serve, type Served } from './serve.ts'
