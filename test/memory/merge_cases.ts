/**
 * Merges with their results, written by hand. Lines are parted by `/`, for they are short; `null`
 * is a version that was deleted, or a base that is not known. `merged` is the outcome of a clean
 * merge; where it is missing the conflict stays open, with `draft` to begin with.
 */
export interface MergeCase {
  name: string
  strategy: 'text' | 'union'
  base: string | null
  ours: string | null
  theirs: string | null
  merged?: string
  draft?: string
}

const O = '<<<<<<< version 2 by ada'
const B = '||||||| base'
const M = '======='
const T = '>>>>>>> version 3 by bob'

type Sides = [base: string | null, ours: string | null, theirs: string | null]

const text = (name: string, sides: Sides, merged: string): MergeCase => ({
  ...of(name, 'text', sides),
  merged,
})
const textOpen = (name: string, sides: Sides, ...draft: string[]): MergeCase => ({
  ...of(name, 'text', sides),
  draft: draft.join('/'),
})
const union = (name: string, sides: Sides, merged: string): MergeCase => ({
  ...of(name, 'union', sides),
  merged,
})
const unionOpen = (name: string, sides: Sides, ...draft: string[]): MergeCase => ({
  ...of(name, 'union', sides),
  draft: draft.join('/'),
})
const of = (name: string, strategy: 'text' | 'union', [base, ours, theirs]: Sides) => ({
  ...{ name, strategy, base, ours, theirs },
})

export const CASES: MergeCase[] = [
  // Clean: they changed different places.
  text('different lines', ['a/b/c/d/e', 'A/b/c/d/e', 'a/b/c/d/E'], 'A/b/c/d/E'),
  text('one line between them', ['a/b/c', 'A/b/c', 'a/b/C'], 'A/b/C'),
  text('a line added above, one below', ['a/b/c', 'x/a/b/c', 'a/b/c/y'], 'x/a/b/c/y'),
  text('a line removed, another changed', ['a/b/c/d', 'b/c/d', 'a/b/c/D'], 'b/c/D'),
  text('two lines removed far apart', ['a/b/c/d/e', 'a/c/d/e', 'a/b/c/e'], 'a/c/e'),
  text('a block moved in by one side only', ['a/z', 'a/m/n/o/z', 'a/z'], 'a/m/n/o/z'),
  text('both made the same change', ['a/b/c', 'a/B/c', 'a/B/c'], 'a/B/c'),
  text('both made the same change, one made more', ['a/b/c/d', 'a/B/c/d', 'a/B/c/D'], 'a/B/c/D'),
  text('both added the same line', ['a/b', 'a/x/b', 'a/x/b'], 'a/x/b'),
  text('both removed the same line', ['a/b/c', 'a/c', 'a/c'], 'a/c'),
  text('only theirs changed', ['a/b', 'a/b', 'a/B'], 'a/B'),
  text('only ours changed', ['a/b', 'A/b', 'a/b'], 'A/b'),
  text('theirs emptied a part that ours left alone', ['a/b/c/d/e', 'A/b/c/d/e', 'a/b/c'], 'A/b/c'),
  text('a last line without an end', ['a/b/', 'A/b/', 'a/b'], 'A/b'),
  text('repeated lines', ['a/a/b/a/a', 'a/a/b/a/a/x', 'y/a/a/b/a/a'], 'y/a/a/b/a/a/x'),
  text('words in other scripts', ['ä/錠/𝄞', 'Ä/錠/𝄞', 'ä/錠/𝄢'], 'Ä/錠/𝄢'),
  text(
    'lines that look like markers',
    ['=======/b/c', '=======/b/C', 'x/=======/b/c'],
    'x/=======/b/C',
  ),
  text(
    'lines named like what objects have',
    ['constructor/b/__proto__', 'constructor/b/x', 'y/b/__proto__'],
    'y/b/x',
  ),

  // Adjacent: next to each other is too close to be sure.
  textOpen('neighbouring lines', ['a/b', 'A/b', 'a/B'], O, 'A/b', B, 'a/b', M, 'a/B', T),
  textOpen(
    'two lines added at one place',
    ['a/c', 'a/x/c', 'a/y/c'],
    'a',
    O,
    'x',
    B,
    M,
    'y',
    T,
    'c',
  ),

  // Overlapping.
  textOpen('the same line', ['a/b/c', 'a/X/c', 'a/Y/c'], 'a', O, 'X', B, 'b', M, 'Y', T, 'c'),
  textOpen(
    'one line inside a block',
    ['a/b/c/d', 'a/X/Y/d', 'a/b/C/d'],
    'a',
    O,
    'X/Y',
    B,
    'b/c',
    M,
    'b/C',
    T,
    'd',
  ),
  textOpen(
    'a clean part and one that is not',
    ['a/b/c/d/e', 'A/b/c/d/X', 'a/b/c/d/Y'],
    'A/b/c/d',
    O,
    'X',
    B,
    'e',
    M,
    'Y',
    T,
  ),
  textOpen(
    'a line changed here and removed there',
    ['a/b/c', 'a/B/c', 'a/c'],
    'a',
    O,
    'B',
    B,
    'b',
    M,
    T,
    'c',
  ),
  textOpen('everything', ['a', 'b', 'c'], O, 'b', B, 'a', M, 'c', T),
  textOpen('no base', [null, 'a/b/c', 'a/x/c'], 'a', O, 'b', M, 'x', T, 'c'),

  // Deleted here, changed there: what is left of the two is the draft.
  textOpen('ours deleted, theirs changed', ['a', null, 'b'], 'b'),
  textOpen('ours changed, theirs deleted', ['a', 'b', null], 'b'),
  unionOpen('deleted, under union', ['[1]', null, '[1,2]'], '[1,2]'),

  // JSON objects.
  union('fields of both', ['{}', '{"a":1}', '{"b":2}'], '{"a":1,"b":2}'),
  union('fields of both, without a base', [null, '{"a":1}', '{"b":2}'], '{"a":1,"b":2}'),
  union(
    'deep down',
    ['{"x":{"y":{}}}', '{"x":{"y":{"a":1}}}', '{"x":{"y":{"b":[2]},"z":3}}'],
    '{"x":{"y":{"a":1,"b":[2]},"z":3}}',
  ),
  union(
    'a value that theirs changed',
    ['{"a":1,"b":1}', '{"a":1,"b":2}', '{"a":9,"b":1}'],
    '{"a":9,"b":2}',
  ),
  union(
    'a field that ours removed, and theirs left alone, is gone',
    ['{"a":1,"b":1}', '{"b":1}', '{"a":1,"b":2}'],
    '{"b":2}',
  ),
  union(
    'a field that theirs removed, and ours left alone, is gone',
    ['{"a":{"x":[1]},"b":1}', '{"a":{"x":[1]},"b":1,"c":3}', '{"b":1}'],
    '{"b":1,"c":3}',
  ),
  union('a field that both removed is gone', ['{"a":1,"b":1}', '{"b":1}', '{"b":2}'], '{"b":2}'),
  union(
    'a null that one removed is gone, one that was added stays',
    ['{"a":null}', '{"a":null,"b":null}', '{}'],
    '{"b":null}',
  ),
  union(
    'removed deep down',
    ['{"x":{"a":1,"b":2}}', '{"x":{"b":2}}', '{"x":{"a":1,"b":2,"c":3}}'],
    '{"x":{"b":2,"c":3}}',
  ),
  union(
    'without a base nobody knows what was removed: all is kept',
    [null, '{"b":1}', '{"a":1,"b":1}'],
    '{"b":1,"a":1}',
  ),
  union(
    'a base that was prose says nothing of fields: all is kept',
    ['not JSON', '{"b":1}', '{"a":1}'],
    '{"b":1,"a":1}',
  ),
  union('everything removed by one side', ['{"a":1,"b":1}', '{}', '{"a":1,"b":1}'], '{}'),
  unionOpen(
    'a field that ours removed and theirs changed',
    ['{"a":1}', '{}', '{"a":2}'],
    O,
    '{}',
    B,
    '{"a":1}',
    M,
    '{"a":2}',
    T,
  ),
  unionOpen(
    'a field that theirs removed and ours changed deep down',
    ['{"a":{"x":1}}', '{"a":{"x":1,"y":2}}', '{}'],
    O,
    '{"a":{"x":1,"y":2}}',
    B,
    '{"a":{"x":1}}',
    M,
    '{}',
    T,
  ),
  union('many lines stay many lines', ['{}', '{/  "a": 1/}', '{"b":2}'], '{/  "a": 1,/  "b": 2/}'),
  union('a field called __proto__', ['{}', '{"__proto__":1}', '{"a":2}'], '{"__proto__":1,"a":2}'),
  unionOpen(
    'a value that both changed',
    ['{"a":1}', '{"a":2}', '{"a":3}'],
    O,
    '{"a":2}',
    B,
    '{"a":1}',
    M,
    '{"a":3}',
    T,
  ),
  unionOpen('two values, no base', [null, '{"a":2}', '{"a":3}'], O, '{"a":2}', M, '{"a":3}', T),
  unionOpen('an object and a list', ['{}', '{"a":1}', '[1]'], O, '{"a":1}', B, '{}', M, '[1]', T),
  unionOpen(
    'numbers too long to be read exactly',
    ['[]', '[12345678901234567890]', '[1]'],
    O,
    '[12345678901234567890]',
    B,
    '[]',
    M,
    '[1]',
    T,
  ),
  unionOpen('prose', ['a', 'b', 'c'], O, 'b', B, 'a', M, 'c', T),

  // Lists as sets.
  union('items of both', ['["a"]', '["a","b"]', '["a","c"]'], '["a","b","c"]'),
  union('the same item twice is one', ['[]', '[1,1,2]', '[2,3]'], '[1,2,3]'),
  union(
    'items are equal whatever the order of their fields',
    ['[]', '[{"a":1,"b":2}]', '[{"b":2,"a":1},{"c":3}]'],
    '[{"a":1,"b":2},{"c":3}]',
  ),
  union('an item that ours removed is gone', ['[1,2,3]', '[1,3]', '[1,2,3,4]'], '[1,3,4]'),
  union('an item that theirs removed is gone', ['[1,2,3]', '[0,1,2,3]', '[3]'], '[0,3]'),
  union('each removed another item', ['["a","b","c"]', '["b","c"]', '["a","c"]'], '["c"]'),
  union('an item removed and added again elsewhere', ['[1,2]', '[2,1]', '[1,2,3]'], '[2,1,3]'),
  union('items removed without a base come back', [null, '[1,3]', '[1,2,3]'], '[1,3,2]'),
  union(
    'an item that one changed: the old is gone, the new stays',
    ['[{"n":1}]', '[{"n":2}]', '[{"n":1},{"m":1}]'],
    '[{"n":2},{"m":1}]',
  ),
  union(
    'a list removed from a list in a field',
    ['{"tags":["a","b"],"n":1}', '{"tags":["b"],"n":1}', '{"tags":["a","b","c"],"n":2}'],
    '{"tags":["b","c"],"n":2}',
  ),
  union('1 and "1" are two', ['[]', '[1,null]', '["1",null]'], '[1,null,"1"]'),
]
