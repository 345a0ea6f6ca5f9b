import { LocalProvider } from '../../src/daemon/embedding/local.ts'
import type { Provider } from '../../src/daemon/embedding/provider.ts'

/** The model of the package, loaded once for a file. It reads a text once, for all stores. */
export class FileModel extends LocalProvider {
  private readonly read = new Map<string, Float32Array>()

  constructor() {
    super(undefined, new URL('../../dist/test/embedder.mjs', import.meta.url))
  }

  override async embed(texts: string[], urgent?: boolean): Promise<Float32Array[]> {
    const fresh = texts.filter((text) => !this.read.has(text))
    const vectors = fresh.length > 0 ? await super.embed(fresh, urgent) : []
    for (const [i, text] of fresh.entries()) this.read.set(text, vectors[i]!)
    return texts.map((text) => this.read.get(text)!)
  }

  /** For those who close a model when they are done with it: this one is closed by the file. */
  get shared(): Provider {
    const { name, dimensions, alike, floor } = this
    const embed = (texts: string[], urgent?: boolean) => this.embed(texts, urgent)
    return { name, dimensions, alike, floor, embed, close: async () => undefined }
  }
}
