import { posix } from 'node:path'
import { type Fault, fault, matches, type Rule, type TreeFile } from './tidy_rules.ts'

/** What once was true stays in the changelog. */
const isPage = ({ path }: TreeFile) => path.endsWith('.md') && path !== 'CHANGELOG.md'

const TOP = new Set(['src', 'test', 'lab', 'bench', 'docs'])
const LINK = /\]\((?!https?:)([^)#\s]+\.(?:md|ts|json|py))(?:#[^)]*)?\)/
const NAMED = /`([\w.-]+(?:\/[\w.-]+)+\/?)`/

/** Design pages say `core/view.ts` for a file of src, and `e2e/race` for one of test. */
function existsAs(named: string, paths: Set<string>): boolean {
  return ['', 'src/', 'test/']
    .flatMap((above) => ['', '/', '.ts', '.test.ts'].map((end) => above + named + end))
    .some((path) => paths.has(path))
}

/** The files of the tree, and its folders with a slash at their end. */
function pathsOf(files: TreeFile[]): Set<string> {
  const paths = new Set<string>()
  for (const { path } of files) {
    paths.add(path)
    for (let end = path.indexOf('/'); end > 0; end = path.indexOf('/', end + 1)) {
      paths.add(path.slice(0, end + 1))
    }
  }
  return paths
}

const pagePaths: Rule = {
  says: 'pages name only files that exist',
  faults(files) {
    const paths = pathsOf(files)
    const gone = (page: TreeFile): Fault[] => {
      const found: Fault[] = []
      for (const [link, line] of matches(page, page.text, LINK)) {
        if (paths.has(posix.join(posix.dirname(page.path), link))) continue
        found.push(fault(page, line, `links to ${link}, which does not exist. Mend the link.`))
      }
      for (const [named, line] of matches(page, page.text, NAMED)) {
        const [first] = named.split('/')
        const isOurs = TOP.has(first!) || existsAs(`${first}/`, paths)
        if (!isOurs || existsAs(named, paths)) continue
        found.push(fault(page, line, `names ${named}, which does not exist. Mend the path.`))
      }
      return found
    }
    return files.filter(isPage).flatMap(gone)
  },
}

const INDEX = 'docs/README.md'

const pageIndex: Rule = {
  says: `${INDEX} names every page of docs`,
  faults(files) {
    const listed = files.find(({ path }) => path === INDEX)?.text ?? ''
    const pages = files.filter(({ path }) => path.startsWith('docs/') && path.endsWith('.md'))
    return pages
      .filter(({ path }) => path !== INDEX && !listed.includes(`(${path.slice('docs/'.length)})`))
      .map((page) => fault(page, 1, `is not in ${INDEX}. Give it a line there.`))
  },
}

const CLASS = /\.([a-z][\w-]*)(?=[^{}]*\{)/

const styleClasses: Rule = {
  says: 'a style sheet has no class that nothing in src names',
  faults(files) {
    const scripts = files.filter(({ path }) => /^src\/.*\.tsx?$/.test(path))
    const words = new Set(scripts.flatMap(({ text }) => text.match(/[\w-]+/g) ?? []))
    // Some are put together: `is-${status}`, and colours of a terminal by their number.
    const isNamed = (name: string) =>
      [name, name.replace(/^is-/, ''), name.replace(/\d$/, '')].some((each) => words.has(each))
    return files
      .filter(({ path }) => path.endsWith('.css'))
      .flatMap((sheet) =>
        [...matches(sheet, sheet.text, CLASS)]
          .filter(([name]) => !isNamed(name))
          .map(([name, line]) =>
            fault(sheet, line, `styles .${name}, which nothing has. Drop it.`),
          ),
      )
  },
}

export const PAGE_RULES = { pagePaths, pageIndex, styleClasses } satisfies Record<string, Rule>
