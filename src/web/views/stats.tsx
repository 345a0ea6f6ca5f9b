export function Stats() { return <p>todo</p> }
