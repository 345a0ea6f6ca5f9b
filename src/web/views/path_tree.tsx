export function PathTree({ wanted }: { wanted: string }) {
  return <p>{wanted}</p>
}
