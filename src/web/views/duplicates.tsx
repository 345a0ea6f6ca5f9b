import { Empty } from '../parts/empty.tsx'

export function Duplicates() {
  return <Empty title="No duplicates" />
}
