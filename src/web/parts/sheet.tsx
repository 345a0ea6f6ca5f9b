import type { ComponentChildren } from 'preact'
import type { Refusal } from '../../core/refusal.ts'
import { leave } from '../route.ts'
import { Acts, IconButton } from './buttons.tsx'
import { Loading, Trouble } from './empty.tsx'
import { type ShownFact, Facts } from './frame.tsx'
import type { Act } from './resource.ts'

interface SheetProps {
  /** What it is, for those who do not see it: `Lock git:web`. */
  label: string
  title: ComponentChildren
  badge?: ComponentChildren
  refusal?: Refusal | null
  /** It is still asked for. */
  isLoading?: boolean
  /** What matters most, before all else. */
  first?: ComponentChildren
  facts?: ShownFact[]
  acts?: Act[]
  children?: ComponentChildren
}

/** One thing beside its list: what it is, what can be done, and all that is known of it. */
export function Sheet(props: SheetProps) {
  const { label, title, badge, refusal, isLoading, first, facts, acts = [], children } = props
  return (
    <aside class="panel sheet" aria-label={label}>
      <header class="panel-head">
        <h2>{title}</h2>
        {badge}
        <IconButton icon="close" label="Close" act={leave} />
      </header>
      <div class="sheet-body">
        <Trouble refusal={refusal ?? null} />
        {isLoading && !refusal && <Loading />}
        {first}
        {facts && <Facts of={facts} />}
        <Acts of={acts} />
        {children}
      </div>
    </aside>
  )
}

interface SectionProps {
  title: string
  children: ComponentChildren
}

export function Section({ title, children }: SectionProps) {
  return (
    <section aria-label={title}>
      <h3>{title}</h3>
      {children}
    </section>
  )
}
