/**
 * opencode has plugins instead of hooks: this one asks `leasehold hook opencode`. Where leasehold
 * is not installed it asks nobody, as hooks of other agents do.
 */
export const OPENCODE_PLUGIN = `// Written by leasehold init, which replaces it.
// It asks: leasehold hook opencode EVENT
import { spawn } from 'node:child_process'
import { delimiter, join } from 'node:path'

export const Leasehold = async ({ directory }) => {
  const PATH = [process.env.PATH, join(directory, 'node_modules/.bin')].join(delimiter)
  /** Who started a conversation, what it was told, and who it is to its commands. */
  const parents = new Map()
  const begun = new Map()
  /** What there is to say of a call that is under way. */
  const said = new Map()

  const ask = (event, input) =>
    new Promise((resolve) => {
      const env = { ...process.env, PATH }
      const child = spawn('leasehold', ['hook', 'opencode', event], { cwd: directory, env })
      let out = ''
      child.stdout.on('data', (text) => (out += text))
      child.stdin.on('error', () => {})
      child.on('error', () => resolve({}))
      child.on('close', () => {
        try {
          resolve(JSON.parse(out))
        } catch {
          resolve({})
        }
      })
      const parent_id = parents.get(input.session_id)
      child.stdin.end(JSON.stringify({ cwd: directory, ...input, parent_id }))
    })

  const begin = (session_id) => {
    if (!begun.has(session_id)) begun.set(session_id, ask('session.created', { session_id }))
    return begun.get(session_id)
  }

  return {
    event: async ({ event: { type, properties } }) => {
      const session_id = properties.sessionID ?? properties.info?.id
      if (type === 'session.created' && properties.info.parentID) {
        parents.set(session_id, properties.info.parentID)
      }
      if (type === 'session.idle' || type === 'session.deleted') await ask(type, { session_id })
      if (type === 'session.deleted') begun.delete(session_id)
    },
    'experimental.chat.system.transform': async ({ sessionID }, { system }) => {
      if (!sessionID) return
      const { context } = await begin(sessionID)
      if (context) system.push(context)
    },
    'shell.env': async ({ sessionID }, output) => {
      if (sessionID) Object.assign(output.env, (await begin(sessionID)).env)
    },
    'tool.execute.before': async ({ tool, sessionID, callID }, { args }) => {
      const asked = { session_id: sessionID, call_id: callID, tool, args }
      const { deny, context } = await ask('tool.execute.before', asked)
      if (deny) throw new Error(deny)
      if (context) said.set(callID, context)
    },
    'tool.execute.after': async ({ tool, sessionID, callID, args }, output) => {
      const done = { session_id: sessionID, call_id: callID, tool, args }
      const { context } = await ask('tool.execute.after', done)
      for (const text of [said.get(callID), context]) if (text) output.output += '\\n' + text
      said.delete(callID)
    },
  }
}
`
