import { copyStore } from '../../src/stores/copy/copy.ts'
import { placeOf } from '../../src/stores/open.ts'
import { PostgresBackend } from '../../src/stores/postgres/backend.ts'

/**
 * A process that copies a store and is killed on the way: `FOLDER FROM TO STEP`. At `checked` while
 * what was written is read back, at `sent` when COMMIT has been asked for and not been answered.
 */
const [, , folder = '', from = '', to = '', step = ''] = process.argv
const placed = (store: string) => placeOf({ LEASEHOLD_DIR: folder, LEASEHOLD_STORE: store }, folder)
type Finish = (db: { run: (text: string) => Promise<unknown> }) => Promise<void>
const die = () => process.kill(process.pid, 'SIGKILL')

if (step === 'sent') {
  const { prototype } = PostgresBackend as unknown as { prototype: { finish: Finish } }
  prototype.finish = async (db) => {
    void db.run('COMMIT')
    // The next turn of the loop has written it to the socket.
    await new Promise((resolve) => void setImmediate(resolve))
    die()
  }
}

await copyStore(placed(from), placed(to), {
  progress: (now, part) => {
    if (step === now && part === 'task') die()
  },
})
