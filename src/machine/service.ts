import { join } from 'node:path'
import { homeFolder } from './login.ts'

/** What is kept running: a program, its variables, and a line for people. */
interface Kept {
  argv: string[]
  env: Record<string, string>
  about: string
}

/** How this machine keeps a program running: what is written where, and which commands follow. */
export interface Service {
  name: string
  file: string
  text(kept: Kept): string
  start: string[][]
  stop: string[][]
  /** Exits with 0 while it runs. */
  look: string[]
}

export function serviceOf(name: string, env: NodeJS.ProcessEnv): Service {
  return process.platform === 'darwin' ? launchd(name, env) : systemd(`${name}.service`, env)
}

function systemd(name: string, env: NodeJS.ProcessEnv): Service {
  const home = env['XDG_CONFIG_HOME'] || join(homeFolder(env), '.config')
  const user = (...args: string[]) => ['systemctl', '--user', ...args]
  return {
    name,
    file: join(home, 'systemd', 'user', name),
    text: unitText,
    start: [user('daemon-reload'), user('enable', '--now', name)],
    stop: [user('disable', '--now', name)],
    look: user('is-active', '--quiet', name),
  }
}

/** The agents that a server started outlive it, and the next one adopts them: KillMode. */
function unitText({ argv, env, about }: Kept): string {
  const plain = (text: string) => text.replaceAll('%', '%%')
  const quoted = (text: string) => `"${plain(text.replaceAll(/["\\]/g, String.raw`\$&`))}"`
  const variables = Object.entries(env).map((each) => `Environment=${quoted(each.join('='))}`)
  return `[Unit]
Description=${plain(about)}

[Service]
${variables.join('\n')}
ExecStart=${argv.map((each) => quoted(each).replaceAll('$', () => '$$')).join(' ')}
Restart=on-failure
RestartSec=1
KillMode=process
UMask=0077

[Install]
WantedBy=default.target
`
}

/** Written by its documentation; nobody has tried it. */
function launchd(name: string, env: NodeJS.ProcessEnv): Service {
  const file = join(homeFolder(env), 'Library', 'LaunchAgents', `${name}.plist`)
  const domain = `gui/${process.getuid?.() ?? 0}`
  return {
    name,
    file,
    text: (kept) => plistText(name, kept),
    start: [['launchctl', 'bootstrap', domain, file]],
    stop: [['launchctl', 'bootout', `${domain}/${name}`]],
    look: ['launchctl', 'print', `${domain}/${name}`],
  }
}

const ENTITIES: Record<string, string> = { '&': '&amp;', '<': '&lt;', '>': '&gt;' }

function plistText(name: string, { argv, env }: Kept): string {
  const text = (value: string) =>
    `<string>${value.replaceAll(/[&<>]/g, (each) => ENTITIES[each]!)}</string>`
  const pairs = (values: [string, string][]) =>
    `<dict>${values.map(([key, value]) => `<key>${key}</key>${value}`).join('\n')}</dict>`
  const all = pairs([
    ['Label', text(name)],
    ['ProgramArguments', `<array>${argv.map(text).join('')}</array>`],
    ['EnvironmentVariables', pairs(Object.entries(env).map(([key, value]) => [key, text(value)]))],
    ['RunAtLoad', '<true/>'],
    ['KeepAlive', pairs([['SuccessfulExit', '<false/>']])],
    ['AbandonProcessGroup', '<true/>'],
  ])
  return `<?xml version="1.0" encoding="UTF-8"?>\n<plist version="1.0">${all}</plist>\n`
}
