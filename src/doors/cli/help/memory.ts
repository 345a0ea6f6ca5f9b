/** What the help of the memory commands shows below their flags. */
export const MEMORY_EXAMPLES: Record<string, string> = {
  'memory put': `
Without --based-on, a key that already says something else is a conflict: both versions are kept,
the answer shows the other one, and leasehold memory conflicts lists it. The exit code is 0, because
your version was written. The same content again changes nothing.

Examples:
  leasehold memory put build "Run make before npm test" --scope project:web
  leasehold memory put build - --based-on 3 < note.md
  leasehold memory put db-port 5433 --confidence 0.8 --tag setup --ttl 30d
  leasehold memory put plan - --scope task:42 --task 42 < plan.md    only while its lock is yours`,
  'memory get': `
Invisible characters (control codes, text that runs backwards) are spelled out. For the exact text:
  leasehold memory get build --json

If versions disagree, all of them are shown. See: leasehold memory conflicts`,
  'memory diff': `
Examples:
  leasehold memory diff build                     what the newest version changed
  leasehold memory diff build --from 1 --to 4`,
  'memory delete': `
The note disappears from lists and searches; leasehold memory history still shows it until it is
pruned. To delete only if it is still what you read: --based-on VERSION.`,
  'memory prune': `
Without flags: notes that were deleted or have expired. By default nothing is removed, only shown:

Examples:
  leasehold memory prune                          what would be removed
  leasehold memory prune --dry-run no             remove it
  leasehold memory prune --scope task:42 --older-than 30d --dry-run no
  leasehold memory prune --below-confidence 0.2
  leasehold memory prune --history --dry-run no   only the texts of old versions

Notes in conflict are never pruned.`,
  'memory conflicts': `
Examples:
  leasehold memory conflicts
  leasehold memory conflicts --id 3f9a1c2b4d5e    both sides, and a draft of a merge
  leasehold memory conflicts --status merged      what was merged automatically`,
  'memory resolve': `
ours is what was there first, theirs is what came later. The outcome is a new version based on both.

Examples:
  leasehold memory resolve 3f9a1c2b4d5e --choose theirs
  leasehold memory resolve 3f9a1c2b4d5e --content - < merged.md
  leasehold memory resolve 3f9a1c2b4d5e --content "Neither: use port 5434" --supersede`,
}
