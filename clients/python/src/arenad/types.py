"""The JSON types of the API. Times are RFC 3339 in UTC, durations milliseconds, sizes bytes."""

from __future__ import annotations

from typing import Any, Literal, TypedDict


class Version(TypedDict):
    """The version of the daemon and of its API."""

    version: str
    api: str


class Stage(TypedDict):
    """One stage of a reset, with its duration."""

    stage: str
    duration_ms: float


class Viewport(TypedDict):
    """The size of a viewport, in CSS pixels."""

    width: int
    height: int


class BrowserElement(TypedDict):
    """An element that an observation shows."""

    text: str
    bounds: list[float] | None
    """Left edge, upper edge, width and height in the viewport, in CSS pixels."""


class BrowserObservation(TypedDict):
    """The page as an agent sees it."""

    text: str
    """The list of tabs, and the tree with the ids of elements; for `set_of_marks`, the list of elements."""
    screenshot: str | None
    """The viewport as PNG in base64, with boxes for `set_of_marks`."""
    elements: dict[str, BrowserElement] | None
    """The elements by id."""


class BrowserTab(TypedDict):
    """A tab of a browser."""

    title: str
    url: str
    is_current: bool


class BrowserActionError(TypedDict):
    """The reason why an action failed."""

    kind: Literal["parse", "execution"]
    message: str
    """The words of WebArena's code."""
    hint: str | None


class BrowserStep(TypedDict):
    """The page in the browser of an episode, after a reset or an action."""

    episode: str
    step: int
    observation: BrowserObservation
    url: str
    tabs: list[BrowserTab]
    viewport: Viewport
    error: BrowserActionError | None
    done: bool
    answer: str | None


class PageElement(TypedDict, total=False):
    """An element that people act on. Empty texts are left out."""

    selector: str
    """A CSS selector that only this element matches."""
    tag: str
    id: str
    role: str
    name: str
    href: str
    near: str
    """The text around the element."""


class PageElements(TypedDict):
    """A page in the browser of an episode."""

    url: str
    title: str
    status: int
    """The HTTP status of the page; 0 if the browser does not tell it."""
    elements: list[PageElement]


class PageResource(TypedDict):
    """A file that a page has loaded."""

    url: str
    content: str
    """The content, which is text or base64."""
    is_base64: bool


class PageSnapshot(TypedDict):
    """The whole content of a page in the browser of an episode."""

    url: str
    title: str
    mhtml: str | None
    """The page and its resources as MHTML; null if the resources take more than 16 MiB."""
    dom: dict[str, Any]
    """The nodes with their bounds, as `DOMSnapshot.captureSnapshot` of the DevTools protocol describes them."""
    element: int | None
    """The `backendNodeId` of the element that the selector matches; null without one."""
    resources: list[PageResource]
    """The scripts, style sheets, images and fonts that the page has loaded, without those beyond the first 16 MiB."""


class TrajectoryStep(TypedDict):
    """One step of an agent: the page before its action, and the action."""

    url: str
    html: str | None
    selector: str | None
    element_value: str | None
    text_content: str | None
    done: bool


class Trajectory(TypedDict):
    """The recorded steps of an episode's agent."""

    steps: list[TrajectoryStep]
    after: TrajectoryStep | None
    """The page after the last action, without its HTML."""
    declared_done: bool


class Reset(TypedDict):
    """The result of a reset."""

    id: str
    instance: str
    strategy: str
    """`swap`, `rewind`, `recreate`, `keep`, `untouched`."""
    requested_at: str
    finished_at: str | None
    outcome: str | None
    reason: str | None
    duration_ms: float | None
    stages: list[Stage]


class _Operation(TypedDict):
    id: str
    environment: str
    site: str
    kind: str
    joined: bool
    state: Literal["running", "done", "failed", "superseded"]


class Operation(_Operation, total=False):
    """An operation on one site, running or finished."""

    duration_ms: float
    reason: str
    hint: str
    reset: Reset
    snapshot: Snapshot


class Site(TypedDict):
    """A site and its serving instance; the daemon sends more fields."""

    environment: str
    name: str
    title: str
    url: str
    instance: str
    state: str
    """`down`, `preparing`, `starting`, `ready`, `unhealthy`, `resetting`, `stopping`, `failed`."""
    since: str
    reason: str | None
    hint: str | None
    generation: int
    snapshot: str | None
    last_reset: Reset | None


class Environment(TypedDict):
    """An environment that is up."""

    name: str
    description: str
    host: str
    sites: list[Site]


class Status(TypedDict):
    """All environments and sites that are up."""

    daemon: dict[str, Any]
    conditions: list[dict[str, Any]]
    environments: list[Environment]


class Difference(TypedDict):
    """A difference between a site and its snapshot."""

    store: str
    kind: str
    name: str
    before: str | None
    now: str | None
    text: str


class Verification(TypedDict):
    """The result of comparing a site with its snapshot."""

    environment: str
    site: str
    instance: str
    generation: int
    snapshot: str
    equal: bool
    digest: str
    differences: list[Difference]
    omitted: int
    stores: list[dict[str, Any]]


class Evidence(TypedDict):
    """The evidence for a value: how it was read."""

    locator: str
    ran: str
    environment: str
    site: str
    instance: str
    generation: int
    duration_ms: float
    notes: dict[str, str]


class Located(TypedDict):
    """A value read from a site, with its evidence."""

    type: str
    """`null`, `bool`, `integer`, `decimal`, `float`, `text`, `bytes`, `timestamp`, `json` or `rows`."""
    value: Any
    """Exact decimals as text, bytes in hexadecimal; rows as `{"columns": […], "rows": [[{"type", "value"}, …], …]}`."""
    evidence: Evidence


class Cookie(TypedDict):
    """A cookie in the format of Playwright's storage state."""

    name: str
    value: str
    domain: str
    path: str
    expires: int
    httpOnly: bool
    secure: bool
    sameSite: str


class Session(TypedDict):
    """A session of an account."""

    environment: str
    site: str
    account: str
    url: str
    instance: str
    generation: int
    is_kept: bool
    duration_ms: float
    cookies: list[Cookie]
    headers: dict[str, str]


class ListedAccount(TypedDict):
    """An account of a site."""

    name: str
    username: str
    login: str | None
    """How the account signs in: `form`, `headers` and others; `None` if the definition does not say."""


class StorageState(TypedDict):
    """The argument of Playwright's `browser.new_context(storage_state=…)`."""

    cookies: list[Cookie]
    origins: list[Any]


class _Snapshot(TypedDict):
    """The fields that every snapshot has."""

    id: str
    environment: str
    site: str
    kind: Literal["baseline", "named"]
    name: str | None
    images: dict[str, str]
    size_bytes: int
    created_at: str
    used_by: list[str]


class Snapshot(_Snapshot, total=False):
    """A snapshot; the fields of this class are present only if its images are not in the engine."""

    other_engine: str
    missing_since: str


class SnapshotDifferences(TypedDict):
    """The differences between two snapshots of a site; the daemon sends more fields."""

    snapshot: str
    """The id of the later snapshot."""
    differences: list[dict[str, Any]]
    omitted: int
    """The number of differences that the list leaves out."""


class Pruned(TypedDict):
    """The objects that were removed, or in a trial those that would be."""

    items: list[dict[str, Any]]
    is_trial: bool


class ProbeRound(TypedDict):
    """One round of probes."""

    at: str
    generation: int
    ok: bool
    reason: str | None
    duration_ms: float


class ProbeRounds(TypedDict):
    """The rounds of one kind of probes; the daemon sends more fields."""

    kind: str
    names: list[str]
    failures: int
    rounds: list[ProbeRound]


class SiteHealth(TypedDict):
    """The results of the probes of one instance."""

    environment: str
    site: str
    instance: str
    state: str
    since: str
    reason: str | None
    probes: list[ProbeRounds]


class CertificateKey(TypedDict):
    """The public key of an installation."""

    algorithm: str
    key: str


class Look(TypedDict):
    """A kept state, for `since` and `until` of `changes`."""

    number: int


class Event(TypedDict):
    """An entry of the event log."""

    seq: int
    at: str
    kind: str
    instance: str | None
    message: str


class _Check(TypedDict):
    evaluator: str
    rule: str
    place: str
    expected: Any
    verdict: str


class Check(_Check, total=False):
    """One part of a verdict.

    `reason` says why it did not pass, such as `hedged answer: ...`. For a passed check of the strict profile it names
    the leniency that let the answer pass although the published rule refuses it.
    """

    name: str | None
    found: Any
    reason: str | None
    duration_ms: float | None
    parts: list[Check]


class Report(TypedDict):
    """The verdict on an episode; the daemon sends more fields.

    `unsupported` comes from the task and `inconclusive` from the environment, never from the answer. Compute a success
    rate as the passed share of all episodes: counting only the decided ones favours agents whose episodes stay
    undecided.
    """

    verdict: Literal["passed", "failed", "inconclusive", "needs_judge", "unsupported"]
    checks: list[Check]


class Begun(TypedDict):
    """The captured beginning of an episode, which `check` takes."""

    task: str
    environment: str
    at: str
    intent: str
    start: str
    accounts: dict[str, str]
    sites: list[dict[str, Any]]
    values: dict[str, Any]


class Checked(TypedDict):
    """The result of checking an episode of a native task."""

    task: str
    environment: str
    at: str
    answer: str
    url: str | None
    report: Report
    duration_ms: float


class Evaluation(TypedDict):
    """The verdict on an episode by the rules of a benchmark."""

    evaluated: dict[str, Any]
    """The report of each profile that was asked for."""
    evidence: dict[str, Any]
    """The evidence from which the reports are derived; `arenad eval --from` judges it again."""
    duration_ms: float


class Task(TypedDict):
    """A native task, as `arenad tasks ls --json` lists it."""

    name: str
    kind: str
    sites: list[str]
    accounts: dict[str, str]
    start: str
    intent: str


class EpisodeEnding(TypedDict):
    """How an episode ended."""

    state: Literal["released", "expired", "void"]
    code: str
    """The cause as a stable word, such as `client`, `hold_closed`, `wait`, `ttl` or `container_died`."""
    reason: str
    slot: str | None


Recording = Literal["all", "writes", "none"]
"""Which requests of an episode are recorded. Requests other than GET, HEAD and OPTIONS count as writes."""


class EpisodeSite(TypedDict):
    """A site of an episode. `slot` is `None` for a site that all episodes share."""

    site: str
    slot: int | None
    instance: str | None
    generation: int | None
    snapshot: str | None
    url: str | None
    """The public URL; `None` for a slot without a public port."""
    proxy_url: str | None
    """The URL through the episode proxy; `None` if the daemon offers none."""
    port_url: str | None
    """The URL at the own port of the slot, for clients that take no proxy; `None` if it has none."""


class _ReportedEpisode(TypedDict):
    id: str
    environment: str
    state: Literal["queued", "preparing", "active", "frozen", "released", "expired", "void"]
    owner: str
    labels: dict[str, str]
    sites: list[EpisodeSite]
    ttl_seconds: float
    left_seconds: float
    is_held: bool
    asked_at: str
    granted_at: str | None
    ended_at: str | None
    ending: EpisodeEnding | None


class ReportedEvaluation(TypedDict):
    """An evaluation of an episode, without its evidence."""

    at: str
    task: str
    """The native task by name, or the benchmark and the number of its task."""
    verdict: str
    reward: float | None


class ReportedEpisode(_ReportedEpisode, total=False):
    """An episode at one moment. `variables` is left out of lists and of episodes without slots, and `port_variables` if a
    site cannot be reached without the proxy. Daemons that record no episodes leave out `record`."""

    record: Recording | None
    variables: dict[str, str]
    port_variables: dict[str, str]
    forked_from: str | None
    replays: list[str]
    """The names of the replays whose hosts the episode reaches. Left out if there are none."""
    evaluations: list[ReportedEvaluation]
    """The newest hundred evaluations, oldest first. Left out of lists."""


class EpisodeProxy(TypedDict):
    """The episode proxy with the credentials of an episode: the argument of Playwright's `browser.new_context(proxy=…)`."""

    server: str
    username: str
    password: str


class StartedEpisode(TypedDict):
    """The answer to a request for an episode."""

    episode: ReportedEpisode
    token: str
    proxy: EpisodeProxy | None
    is_known: bool


class QueuedRequest(TypedDict):
    """A request that waits for slots."""

    id: str
    position: int
    ahead: int
    is_over_quota: bool
    estimate_seconds: float | None
    owner: str
    environment: str
    sites: list[str]
    asked_at: str


class EpisodeStateEvent(TypedDict):
    """A change of an episode's state."""

    seq: int
    at: str
    episode: str
    state: str
    ending: EpisodeEnding | None


class _EpisodeEvaluation(TypedDict):
    episode: str
    verdict: Literal["passed", "failed", "inconclusive", "needs_judge", "unsupported", "void"]
    reward: float | None
    """1 if the task was accomplished, 0 if it was not, and `None` without a verdict. `None` is not 0: leave it out."""
    ending: EpisodeEnding | None


class EpisodeEvaluation(_EpisodeEvaluation, total=False):
    """The judgement on an episode: `check` for a native task, `evaluation` for the task of a benchmark. `certificate` is
    left out if the caller wants none."""

    check: Checked
    evaluation: Evaluation
    certificate: dict[str, Any]
    """The signed certificate, which `arenad verdict verify` verifies."""


ItemChange = Literal["added", "changed", "removed"]
"""Whether only the later state has something, both have it with different content, or only the earlier one has it."""


class _ChangedRow(TypedDict):
    change: ItemChange
    key: list[str | None]


class ChangedRow(_ChangedRow, total=False):
    """A row that differs. The fields of this class, its values by column, are present only if they were asked for."""

    before: dict[str, str | None]
    """All values of a removed row, and those of a changed row that differ."""
    now: dict[str, str | None]
    """All values of an added row, and those of a changed row that differ."""


class ChangedRows(TypedDict):
    """The rows of a table that differ."""

    key: list[str]
    """The columns of the primary key. Without one, no row counts as changed."""
    added: int
    changed: int
    removed: int
    listed: list[ChangedRow]
    omitted: int
    """The number of rows that `listed` leaves out."""


class ChangedTable(TypedDict):
    """A table with other rows."""

    name: str
    change: ItemChange
    rows_before: int
    rows_now: int
    rows: ChangedRows | None
    """`None` if the table has too many rows, or those of the snapshot are not known."""


class ChangedSequence(TypedDict):
    """A sequence, or a table that numbers its rows, with another number."""

    name: str
    before: str | None
    now: str | None


class ChangedItem(TypedDict):
    """A definition or a key that differs."""

    name: str
    change: ItemChange


class ChangedFile(TypedDict):
    """A file or folder that differs."""

    path: str
    change: ItemChange
    size_before: int | None
    size_now: int | None
    text: str
    """The difference as words: sizes, modes, owners."""
    diff: str | None
    """The difference of the content in the unified format; `None` for binary and long files."""
    diff_is_cut: bool


class ChangedStore(TypedDict):
    """A store that differs."""

    name: str
    tables: list[ChangedTable]
    sequences: list[ChangedSequence]
    definitions: list[ChangedItem]
    files: list[ChangedFile]
    keys: list[ChangedItem]
    omitted: int
    """The number of items that the lists leave out."""


class SiteChanges(TypedDict):
    """The changes of one site."""

    environment: str
    site: str
    instance: str
    generation: int
    snapshot: str
    since: int | None
    until: int | None
    equal: bool
    settled: bool
    """Whether the rows were read in one state. Otherwise the site kept writing to them."""
    duration_ms: float
    stores: list[ChangedStore]


class LeftOutSite(TypedDict):
    """A site that was not compared."""

    site: str
    code: Literal["shared", "no_stores", "no_state_root"]
    reason: str


class EpisodeChanges(TypedDict):
    """The changes of an episode on its sites."""

    episode: str
    environment: str
    since: int | None
    """The look that is the earlier state; `None` stands for the starting points."""
    until: int | None
    """The look that is the later state; `None` stands for the present."""
    equal: bool | None
    """`None` if no site could be compared."""
    settled: bool
    duration_ms: float
    sites: list[SiteChanges]
    left_out: list[LeftOutSite]
