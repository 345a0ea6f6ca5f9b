import { connect, Refusal } from 'leasehold'

// Works on tasks until none is ready: on the server of this checkout or, where none runs, its store.
const client = await connect({ agent: process.env['LEASEHOLD_AGENT'] ?? 'builder-1' })

for (;;) {
  // Renewed while the function runs, done when it returns. The signal aborts if the lease is lost.
  const worked = await client.withTask({}, async (signal, { task }) => {
    await client.withLock('build', { wait_seconds: 30 }, () => {
      signal.throwIfAborted()
      // … your work …
    })
    return task.id
  })
  if (!worked) break
  console.log(worked.result)
}

try {
  await client.withLock('deploy', { wait_seconds: 0 }, () => console.log('deployed'))
} catch (error) {
  // A refusal is an expected "no": what happened, and what to do next.
  if (!(error instanceof Refusal) || error.code !== 'held') throw error
  console.log(`${error.message}; next: ${error.next}`)
}
await client.close()
