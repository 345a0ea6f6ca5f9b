import { closeSync, existsSync, fstatSync, openSync, readSync, watch } from 'node:fs'
import { join } from 'node:path'
import { isRefusal, Refusal } from '../../../core/refusal.ts'
import * as runs from '../../../operations/runs.ts'
import * as tasks from '../../../operations/tasks.ts'
import { folderOf } from '../../../stores/open.ts'
import { SafeOutput } from '../../unseen.ts'
import type { Context } from '../context.ts'
import { refuseWithToken } from '../family.ts'
import { print } from '../show/show.ts'
import { OUTPUT, OUTPUT_OLDER, runFolder } from '../../../machine/run_output.ts'
import { io } from '../../io.ts'

const CHUNK = 64 * 1024
/** A run that ended elsewhere changes no file here; so often its state is asked for. */
const ASK_MS = 1_000

/** Prints what a run wrote, from the older of its two files on; with `follow`, until it ends. */
export async function showLogs(context: Context, asked: string, follow: boolean): Promise<void> {
  refuseWithToken(context.env)
  const run = await begun(context, asked, follow)
  const folder = runFolder(folderOf(context.place), run.id)
  if (context.json) {
    const output = [OUTPUT_OLDER, OUTPUT].map((name) => join(folder, name))
    print(JSON.stringify({ run, folder, output }))
    return
  }
  const tail = new Tail(folder)
  tail.print()
  if (follow && run.ended_at === null) {
    await tail.follow(() => context.call(runs.get, { id: run.id }))
  }
}

/** The run of this id, or the newest one of the task of this id; undefined if it has none yet. */
async function runOf(context: Context, asked: string): Promise<runs.ShownRun | undefined> {
  try {
    return await context.call(runs.get, { id: asked })
  } catch (error) {
    const isTask = error instanceof Refusal && ['not_found', 'invalid'].includes(error.code)
    if (!isTask) throw error
  }
  await context.call(tasks.get, { id: asked }).catch((error: unknown) => {
    throw isRefusal(error, 'not_found') ? neither(asked) : error
  })
  const { items } = await context.call(runs.list, { task_id: asked, limit: 1000 })
  return items.at(-1)
}

function neither(asked: string): Refusal {
  return new Refusal('not_found', `There is no run and no task ${asked}`, {
    next: 'See what there is: leasehold runs list',
    details: { id: asked },
  })
}

/** With `follow`, a run that has not begun yet is waited for. */
async function begun(context: Context, asked: string, follow: boolean): Promise<runs.ShownRun> {
  for (let told = false; ; told = true) {
    const run = await runOf(context, asked)
    if (run && existsSync(logOf(context, run))) return run
    if (!follow || run?.ended_at) throw noLog(run, asked)
    if (!told) io().stderr.write(`waiting for ${asked} to begin\n`)
    await new Promise((resolve) => void setTimeout(resolve, ASK_MS))
  }
}

const logOf = (context: Context, run: runs.ShownRun) =>
  join(runFolder(folderOf(context.place), run.id), OUTPUT)

function noLog(run: runs.ShownRun | undefined, asked: string): Refusal {
  if (!run) {
    return new Refusal('not_found', `Task ${asked} has not been run yet`, {
      next: `See why: leasehold task explain ${asked}. To wait for it: --follow`,
    })
  }
  const why = run.dispatcher === null ? 'an agent claimed it itself' : `it is ${run.status}`
  return new Refusal('not_found', `Run ${run.id} has no output here: ${why}`, {
    next: `See it: leasehold runs show ${run.id}`,
    details: { run_id: run.id, host: run.host },
  })
}

/** Reads on where it stopped, also when the file was put aside for a new one meanwhile. */
class Tail {
  private file: number
  private inode: number
  private readonly safe = new SafeOutput()

  constructor(private readonly folder: string) {
    if (existsSync(join(folder, OUTPUT_OLDER))) {
      this.file = openSync(join(folder, OUTPUT_OLDER), 'r')
      this.rest()
      closeSync(this.file)
    }
    this.file = openSync(join(folder, OUTPUT), 'r')
    this.inode = fstatSync(this.file).ino
  }

  print(): void {
    this.rest()
    const newest = openSync(join(this.folder, OUTPUT), 'r')
    const { ino } = fstatSync(newest)
    if (ino === this.inode) return closeSync(newest)
    closeSync(this.file)
    this.file = newest
    this.inode = ino
    this.rest()
  }

  private rest(): void {
    const buffer = Buffer.alloc(CHUNK)
    for (;;) {
      const size = readSync(this.file, buffer)
      if (size === 0) return
      io().stdout.write(this.safe.feed(buffer.subarray(0, size)))
    }
  }

  /** Until `ask` says that the run has ended, or somebody interrupts. */
  async follow(ask: () => Promise<runs.ShownRun>): Promise<void> {
    const watcher = watch(this.folder, () => this.print())
    try {
      let over = false
      io().once('SIGINT', () => (over = true))
      while (!over) {
        await new Promise((resolve) => void setTimeout(resolve, ASK_MS))
        over ||= (await ask()).ended_at !== null
        this.print()
      }
    } finally {
      watcher.close()
    }
  }
}
