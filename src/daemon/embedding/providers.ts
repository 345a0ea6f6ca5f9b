import type { Config } from '../config/config.ts'
import { EndpointProvider } from './endpoint.ts'
import { LocalProvider } from './local.ts'
import type { Provider } from './provider.ts'

/** Two notes are duplicates from this cosine on, unless a provider or the configuration differs. */
const ALIKE = 0.85

/** The provider that is configured; undefined when notes are not to be embedded. */
export async function openProvider(
  { memory }: Pick<Config, 'memory'>,
  env: NodeJS.ProcessEnv,
): Promise<Provider | undefined> {
  const { provider, url, model, api_key_env, dimensions, duplicates_at } = memory.embeddings
  if (provider === 'off') return undefined
  if (provider === 'local') return new LocalProvider(duplicates_at)
  const key = keyIn(env, api_key_env)
  const alike = duplicates_at ?? ALIKE
  return EndpointProvider.open({ url: url!, model: model!, key, dimensions, alike })
}

function keyIn(env: NodeJS.ProcessEnv, name: string | undefined): string | undefined {
  if (name === undefined) return undefined
  const key = env[name]
  if (!key) throw new Error(`the environment variable ${name} has no key`)
  return key
}
