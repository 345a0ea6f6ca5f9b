/** Drawn on a grid of 16; lines take the colour of the text around them. */
const PATHS = {
  now: 'M1.5 8h3l2-5 3 10 2-5h3',
  work: 'M2.5 4h1M5.5 4h8M2.5 8h1M5.5 8h8M2.5 12h1M5.5 12h8',
  who: 'M8 8a2.5 2.5 0 1 0 0-5 2.5 2.5 0 0 0 0 5zM3 13.5c.5-3 2.5-4 5-4s4.5 1 5 4',
  history: 'M8 2.5a5.5 5.5 0 1 1-5 3.2M2.5 2.5v3.5H6M8 5v3l2 1.5',
  knowledge: 'M3 2.5h7l3 3v8H3zM5.5 8h5M5.5 10.5h5',
  settings: 'M2 4.5h7M12 4.5h2M10.5 3v3M2 11.5h2M7 11.5h7M5.5 10v3',
  locks: 'M4.5 7V5a3.5 3.5 0 0 1 7 0v2M3 7h10v6.5H3z',
  todo: 'M8 2.5a5.5 5.5 0 1 0 0 11 5.5 5.5 0 0 0 0-11z',
  in_progress: 'M8 2.5a5.5 5.5 0 1 0 0 11 5.5 5.5 0 0 0 0-11zM8 5v3l2 1.5',
  review: [
    'M1.5 8S4 3.5 8 3.5 14.5 8 14.5 8 12 12.5 8 12.5 1.5 8 1.5 8z',
    'M8 9.5a1.5 1.5 0 1 0 0-3 1.5 1.5 0 0 0 0 3z',
  ].join(''),
  done: 'M3 8.5l3.2 3.2L13 4.8',
  failed: 'M4 4l8 8M12 4l-8 8',
  cancelled: 'M8 2.5a5.5 5.5 0 1 0 0 11 5.5 5.5 0 0 0 0-11zM4.2 11.8l7.6-7.6',
  lost: 'M8 2L14.5 13.5h-13zM8 6.5v3.2M8 11.6v.4',
  close: 'M4 4l8 8M12 4l-8 8',
  search: 'M7 2.5a4.5 4.5 0 1 0 0 9 4.5 4.5 0 0 0 0-9zM10.3 10.3L14 14',
  sun: [
    'M8 5.2a2.8 2.8 0 1 0 0 5.6 2.8 2.8 0 0 0 0-5.6z',
    'M8 1v1.5M8 13.5V15M1 8h1.5M13.5 8H15M3 3l1 1M12 12l1 1M13 3l-1 1M4 12l-1 1',
  ].join(''),
  moon: 'M13 9.5A5.5 5.5 0 0 1 6.5 3 5.5 5.5 0 1 0 13 9.5z',
  folder: 'M1.5 4h4.5l1.5 1.5h7v7.5h-13z',
  file: 'M4 2h5l3 3v9H4z',
  out: 'M6 2.5H2.5v11H6M7 8h7M11 5l3 3-3 3',
  help: 'M5.5 6a2.5 2.5 0 1 1 3.5 2.3c-.7.3-1 .7-1 1.7M8 12v.5',
} as const

export type IconName = keyof typeof PATHS

export function Icon({ name, size = 16 }: { name: IconName; size?: number }) {
  return (
    <svg class="icon" width={size} height={size} viewBox="0 0 16 16" aria-hidden="true">
      <path d={PATHS[name]} />
    </svg>
  )
}
