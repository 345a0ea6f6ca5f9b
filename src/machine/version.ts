declare const LEASEHOLD_VERSION: string | undefined

/** Set by the build; from source there is none. */
export const VERSION = typeof LEASEHOLD_VERSION === 'string' ? LEASEHOLD_VERSION : 'development'
