export function Memory() { return <p>todo</p> }
