const ASKING = 'hooks/asking'
const KEPT = 'hooks/kept'
const GROUPS = 'faults/foreign_groups'
const TELLS = 'leaves what the page says: an event, under another name'

/** The beginning of each statement of docs/security.md, and what proves it: file › name. */
export const PROVED: Record<string, string[]> = {
  '**The boundary is the login.**': ['doors/matrix › an agent does nothing that is for admins'],
  'Within a login, agents are kept to their own': [
    `${ASKING} › counts for the process that was seen with it, and for no other`,
  ],
  '| root, and a person at a terminal': [
    `${ASKING} › makes no agent of the terminal in which a person types it`,
  ],
  '| a program of this login that is no agent': [
    `${ASKING} › is that agent’s as long as it lives, and then a person’s`,
  ],
  '| an agent, and all that it starts': ['e2e/people › no agent does any of it'],
  '| an agent that was given a token': [
    `${ASKING} › a run is a run whatever its commands leave out`,
  ],
  '| a folder that came from elsewhere': [
    'daemon/approval › has no setting that is neither known to be safe nor tried here',
  ],
  '| a repository': ['worktrees/quiet_git › our own git starts nothing that a repository names'],
  '`lock force-release`, `queue pause`': ['e2e/people › what only people may do is one list'],
  'It is one list, and a new command is on it': [
    'e2e/people › what only people may do is one list',
    'e2e/people › an agent has the part that takes nothing from anybody',
  ],
  '**The process above decides.**': ['hooks/edges › speaks for that agent and those below it'],
  '**A name on standard input**': [
    `${ASKING} › counts for the process that was seen with it, and for no other`,
  ],
  '**What was let go**': [
    `${ASKING} › is that agent’s as long as it lives, and then a person’s`,
    `${ASKING} › a pid namespace of its own makes a command of an agent nobody else’s`,
  ],
  '**A run is a run**': [`${ASKING} › a run is a run whatever its commands leave out`],
  '**The secret in `admin.token`**': [
    `${ASKING} › the secret of this login’s own command line makes no admin of an agent`,
    `${KEPT} › the secret of the server is not read, by whichever tool or command`,
  ],
  '**A hook that a person types**': [
    `${ASKING} › makes no agent of the terminal in which a person types it`,
  ],
  '**An agent that starts a server**': [
    `${ASKING} › an agent does not say for a server that nothing has to be approved`,
  ],
  'A token, always, on loopback too': [
    'doors/matrix › nobody without a token that counts',
    'doors/matrix › stands in no store, log, address or list of processes',
    'doors/revocation › because it expired, though nobody did anything',
  ],
  'Roles: a _viewer_ reads': [
    'doors/matrix › a viewer reads, and changes nothing',
    'doors/matrix › an agent acts as itself or those nested under it, never as another',
    'doors/matrix › nothing is changed by GET, whatever else it says',
  ],
  'An enqueued task is edited only by': [
    'doors/scopes › is edited by its creator, its user or an admin only',
  ],
  'Locks named `leasehold:*`': ['doors/scopes › are refused for every write of every agent'],
  'Refusals are counted by code': [
    'e2e/hostile_agent › gets nothing of another user, changes nothing, and leaves a trace',
    'doors/refusals › are told in the log so many times a minute, and no event is made',
  ],
  'A revoked token is refused at once': [
    'doors/matrix › a revoked token counts no more: here at once, elsewhere within a second',
    'doors/revocation › because it was revoked, through the daemon or past it',
    'doors/revocation › and the lock goes to the next in line',
    'doors/revocation › counts no longer than its lease, though nobody has swept that',
    'doors/revocation › because its page was signed out, in whichever tab',
  ],
  '`serve` leaves `server.json`': [
    'e2e/squatter › is sent nothing: its process is gone',
    'e2e/squatter › is sent nothing as another login, though a process has that number',
  ],
  'The server listens at 127.0.0.1': ['e2e/squatter › is ours in both families, and stops in both'],
  'What may end in a log has no secret': [
    'e2e/squatter › has no link that signs in: neither of serve nor of up',
    'e2e/squatter › has no password of an address, whatever the address is',
  ],
  'Every operation declares its role': [
    'doors/hidden › is told the same whether there is anybody outside of its scope or not',
    'e2e/hostile_agent › planted: without the check of what a write touches, it gets at bob’s',
  ],
  '| reads tasks, runs, logs, events': [
    'doors/scopes › sees in lists what is alice’s, and none of bob’s',
    'doors/scopes › hears events of its own only, live and when it resumes',
  ],
  '| reads notes': ['doors/scopes › is told and changes nothing of bob'],
  '| queue status, statistics': ['doors/scopes › is refused what is about everybody'],
  '| holds locks with free names': [
    'doors/scopes › is told that a lock which is everybody’s is held, and not by whom',
  ],
  '| creates, claims and moves tasks': [
    'doors/scopes › does all that is for agents with what is its own',
    'doors/scopes › changes its own task and those that it made, not another of its user',
  ],
  '| edits a task that waits': [
    'doors/scopes › is edited by its creator, its user or an admin only',
  ],
  '| names a process group': ['doors/matrix › an agent does nothing that is for admins'],
  '| speaks for another agent': [
    'doors/matrix › an agent acts as itself or those nested under it, never as another',
  ],
  'What is outside of a scope does not exist': [
    'doors/scopes › is told and changes nothing of bob, and cannot tell it from nothing',
    'doors/scopes › cannot be an admin, nor make another',
  ],
  'What a token is not bound to is shut': [
    'doors/hidden › is shut to it, unless it was said to be open',
    'doors/hidden › takes and moves branches of its own task only',
    'doors/hidden › without a task belongs to who asked for it',
  ],
  'That none of this tells of others': [
    'doors/hidden › is told the same whether there is anybody outside of its scope or not',
    'doors/hidden_writes › is the same with %s',
  ],
  'Whatever a token does, others are answered.': [
    'faults/worst_token › at its worst keeps nobody else waiting, and can be revoked',
    'doors/budgets › is named, with its limit and when to come back',
  ],
  '| `connections`': ['faults/unseen › cannot use up the descriptors of a daemon'],
  '| `time`': ['doors/budgets › a token ahead of its share waits while others ask'],
  '| `bytes_under_way`': ['doors/bounded › counts for each part of a batch'],
  '| `waits`': ['faults/worst_token › at its worst keeps nobody else waiting'],
  '| `names_in_line`': ['faults/worst_token › at its worst keeps nobody else waiting'],
  '| `streams`': ['doors/budgets › lets in no more of that token, and admins as ever'],
  '| `leases`': ['doors/budgets › is named, with its limit and when to come back'],
  '| `globs`': ['doors/budgets › a check of globs that would take long is refused in time'],
  '| `tasks_waiting`': ['docs/security › the page has the budgets that count'],
  '| `bytes_stored`': ['docs/security › the page has the budgets that count'],
  '`time` is measured, ask by ask': [
    'doors/budgets › a token ahead of its share waits while others ask, and not if it is alone',
    'doors/budgets › of asks that nobody has timed yet, one at a time is let in beside others',
    'doors/budgets › a check of globs that would take long is refused in time',
    'doors/budgets › bodies are not remembered, and rows only up to so many bytes',
    'doors/bounded › is counted in one pass, whatever its texts hold',
    'doors/bounded › is a page by its bytes, and all of it page by page',
  ],
  'If a token has used up its leases': [
    'hooks/token › refuse the edit when the budget of their token is used up',
  ],
  'A link (`leasehold up`': ['doors/session › begins with a link once'],
  'The page exchanges it for a token': [
    'doors/session › is a token of its own, in a cookie that scripts and other sites do not get',
    'doors/session › ends for good when it is signed out',
  ],
  'With a cookie, a change counts': [
    'doors/session › a change needs the origin of this server',
    'doors/session › a read from a page of another port is refused too',
  ],
  'Its files come from the package': [
    'doors/session › come with a policy that lets nothing else in',
  ],
  'Before anything else: the `Host` header': [
    'doors/matrix › the host must be our own, to the letter',
    'doors/matrix › the origin, where a browser tells it, must be our own',
    'doors/matrix › a body is JSON by its own word',
    'doors/bad_input › more levels than anybody needs are refused, not followed',
    'doors/stalling › is cut off at the bound',
    'doors/headers › no page of another site may frame or load any answer',
  ],
  'The state folder is 0700': [
    'stores/privacy › is made for this login only when it is missing',
    'stores/privacy › is refused when git tracks it',
    'faults/store › the folder of another login is refused',
    'faults/store › network file systems are known by their type',
    'faults/store › what FUSE serves is refused unless it is known to be of this machine',
  ],
  'Titles, bodies and metadata are data.': [
    'e2e/injection › arrives byte for byte, and changes neither its arguments nor its environment',
    'doors/mcp › what tasks say is marked as untrusted, in marks that it cannot forge',
    'doors/others_words › names stay bare only where they cannot be read as anything else',
    'doors/others_words › as text that moves, hides and asks nothing',
    'faults/input › names that mean something to JavaScript or SQL are names like any other',
  ],
  'What is started is in `config.json`': [
    'daemon/approval › count only as they were approved',
    'daemon/approval › is not approved by a file that another may have written',
    'daemon/approval › presets too are started only where a person said so',
    'e2e/injection › the token of a run is in its environment only',
  ],
  'An agent gets a door on loopback': [
    'e2e/dispatch_door › get a door and a token, and with these no more than an agent may',
    'e2e/dispatch_door › find it closed when that dispatcher dies, and open again with the next',
    'e2e/dispatch_door › are given nothing that opens the database',
  ],
  'When a lease ends, the command': ['e2e/run › force-release stops the command, and run exits'],
  'Only an admin names a group': [
    `${GROUPS} › is not for an agent’s token, nor of what is not ours`,
  ],
  'Before every signal that mark': [
    `${GROUPS} › is not ours: nobody stops it, whatever a row says of it`,
    `${GROUPS} › has nobody stopped: its lock comes free with the grace`,
  ],
  'Never the first process': [
    `${GROUPS} › the first process, all of them and our own are never meant`,
  ],
  'The process that started a command': [
    `${GROUPS} › is stopped with its lease though it has thrown its environment away`,
    'e2e/run › kill -9 of the wrapper with nobody asking: the command dies all the same',
  ],
  'A process that a caller names': [
    'e2e/dispatch_others › is not killed when the lease that names its process is over',
  ],
  'With `LEASEHOLD_TOKEN` set, `leasehold run`': [
    `${GROUPS} › with a token it runs unnamed, and ends with its wrapper`,
  ],
  'A command that throws its environment away': [
    `${GROUPS} › is stopped with its lease though it has thrown its environment away`,
  ],
  'Where hooks are set': [
    `${KEPT} › is not written, moved, linked or taken away by a command`,
    `${KEPT} › what names programs that git starts is not edited`,
    'worktrees/quiet_git › our own git starts nothing that a repository names',
    'e2e/hostile_agent › an agent that only edits files gets at no state folder',
  ],
  '| start a program of its own that opens the store': [
    'faults/damage › every kind of damage is found, and stops all writers',
  ],
  '| ask the server with that secret': [`${ASKING} › ${TELLS}`],
  '| make itself a terminal': [`${ASKING} › ${TELLS}`],
  '| use another conversation': [
    `${ASKING} › a name that another took before it was seen is refused to its owner`,
  ],
  '| write by a program of its own': ['hooks/net › is told to both agents once, recorded'],
  '| change `.git/config` by `git config`': [
    'worktrees/quiet_git › our own git starts nothing that a repository names',
  ],
  '| change the settings in which its hooks stand': [
    'e2e/init › --check tells of what was changed since',
  ],
  'A holder that ignores a refusal': [
    'e2e/holders › all it then writes is refused as fence_stale, and the other’s work stands',
  ],
}

/** What the page says of others or of itself, and why no test could be red. */
export const SAID: Record<string, string> = {
  'Each of these is a test:': 'it names tests',
  'Not defended:': 'it says what is not done',
  'Cookies are shared by all ports': 'it is how browsers are',
  'Somebody with root, and a process': 'it heads the table',
  '| leave its control group': 'it takes a system of services, which no test may start',
  '| make a pid namespace and a control': 'like a terminal of its own, and it takes root',
  'What we depend on': 'a link',
}
