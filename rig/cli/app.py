"""The command line. Commands are declared here and imported when they are called, so that `rig --help` is quick."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Annotated, NoReturn

import typer

from rig import __version__
from rig.cli.streams import Streams
from rig.errors import EXIT_PASS, EXIT_SIGINT, EXIT_UNKNOWN, RigError, UsageError
from rig.targets.registry import DEFAULT

app = typer.Typer(
    name="rig",
    help="Chaos and soak test rig for LLM serving clusters on Apple silicon.\n\n"
    "Start with `rig soak --minutes 4`: it needs no hardware and runs on an emulated cluster.",
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
    rich_markup_mode=None,
    context_settings={"help_option_names": ["-h", "--help"]},
    epilog="Exit codes: 0 pass, 1 a check failed, 2 usage or configuration, 3 unknown or infrastructure, "
    "130 and 143 interrupted.",
)
cluster = typer.Typer(help="The embedded cluster by itself, to point a browser, curl or another rig command at.")
app.add_typer(cluster, name="cluster", no_args_is_help=True)

Inventory = Annotated[
    str | None,
    typer.Option(
        "--inventory",
        "-i",
        envvar="RIG_INVENTORY",
        help="Name or path. Without one: the embedded cluster.",
        show_default=False,
    ),
]
Hours = Annotated[float | None, typer.Option("--hours", help="Length of the run in hours.", show_default=False)]
Minutes = Annotated[float | None, typer.Option("--minutes", help="Length of the run in minutes.", show_default=False)]
Json = Annotated[bool, typer.Option("--json", help="Machine-readable output on stdout.")]
Yes = Annotated[bool, typer.Option("--yes", "-y", help="Do not ask before faults; for nightly jobs.")]
Seed = Annotated[
    int | None,
    typer.Option("--seed", min=0, max=2**63 - 1, help="Seed of schedule and load.", show_default=False),
]
Workload = Annotated[
    str | None,
    typer.Option("--workload", "-w", help="Name or path. Without one: the target's own.", show_default=False),
]
RunArgument = Annotated[str, typer.Argument(metavar="RUN", help="Folder of a run, its name under results/, or `last`.")]


def _length_s(hours: float | None, minutes: float | None, *, default_s: float) -> float:
    if hours is not None and minutes is not None:
        raise UsageError("give --hours or --minutes, not both")
    length_s = hours * 3600 if hours is not None else minutes * 60 if minutes is not None else default_s
    if not 0 < length_s <= 14 * 86400:
        raise UsageError(f"the length of a run must be above 0 and at most 14 days, not {length_s:g} s")
    return length_s


@app.callback(invoke_without_command=True)
def _root(
    version: Annotated[bool, typer.Option("--version", help="Print the version and exit.")] = False,  # noqa: FBT002 (a flag)
) -> None:
    if version:
        print(f"rig {__version__}")
        raise typer.Exit


@app.command()
def soak(
    *,
    hours: Hours = None,
    minutes: Minutes = None,
    inventory: Inventory = None,
    workload: Workload = None,
    faults: Annotated[
        str | None,
        typer.Option(
            "--faults",
            "-f",
            help="Name or path of the fault plan. [quick if embedded, else the target's own]",
            show_default=False,
        ),
    ] = None,
    seed: Seed = None,
    out: Annotated[Path, typer.Option("--out", help="Where runs are kept.")] = Path("results"),
    name: Annotated[
        str | None, typer.Option("--name", help="Name of the run's folder. [date and time]", show_default=False)
    ] = None,
    yes: Yes = False,
    keep_cluster: Annotated[
        bool, typer.Option("--keep-cluster", help="Keep the embedded cluster's own folder (its ledger) in the run's.")
    ] = False,
    as_json: Json = False,
) -> None:
    """Load and faults for hours; then how many requests were lost and how long each model took to serve again."""
    from rig.cli.soak import soak as command

    length_s = _length_s(hours, minutes, default_s=4 * 60)
    _exit(
        command(
            length_s=length_s,
            inventory=inventory,
            workload=workload,
            faults=faults,
            seed=seed,
            out=out,
            name=name,
            yes=yes,
            keep_cluster=keep_cluster,
            as_json=as_json,
        )
    )


@app.command()
def verify(
    *,
    scenarios: Annotated[
        list[str] | None,
        typer.Argument(metavar="[SCENARIO…]", help="Names or paths. [all that come with the rig]", show_default=False),
    ] = None,
    inventory: Inventory = None,
    workload: Workload = None,
    out: Annotated[Path, typer.Option("--out", help="Where runs are kept.")] = Path("results"),
    name: Annotated[
        str | None, typer.Option("--name", help="Name of the folder. [verify-N]", show_default=False)
    ] = None,
    yes: Yes = False,
    clear: Annotated[
        bool, typer.Option("--clear", help="Delete what is deployed and placed on real nodes first.")
    ] = False,
    keep_cluster: Annotated[
        bool, typer.Option("--keep-cluster", help="Keep the embedded clusters' own folders (their ledgers).")
    ] = False,
    list_them: Annotated[bool, typer.Option("--list", help="Say what each scenario does, and play none.")] = False,
    as_json: Json = False,
) -> None:
    """Scripted scenarios: every promise of the target, caused on purpose."""
    from rig.cli.verify import verify as command

    _exit(
        command(
            scenarios=scenarios or [],
            inventory=inventory,
            workload=workload,
            out=out,
            name=name,
            yes=yes,
            clear=clear,
            keep_cluster=keep_cluster,
            list_them=list_them,
            as_json=as_json,
        )
    )


@app.command()
def plan(
    *,
    hours: Hours = None,
    minutes: Minutes = None,
    inventory: Inventory = None,
    workload: Workload = None,
    faults: Annotated[
        str | None, typer.Option("--faults", "-f", help="Name or path of the fault plan. [the target's own]")
    ] = None,
    seed: Seed = None,
    as_json: Json = False,
) -> None:
    """The faults that a run of this length and seed would strike, and how many to expect."""
    from rig.cli.plan import plan as command

    _length_s(hours, minutes, default_s=3 * 3600)
    _exit(
        command(
            hours=hours,
            minutes=minutes,
            inventory=inventory,
            workload=workload,
            faults=faults,
            seed=seed,
            as_json=as_json,
        )
    )


@app.command()
def inject(
    *,
    kind: Annotated[
        str, typer.Argument(help="node-crash, freeze, partition, … as in a fault plan; docs/faults.md lists them.")
    ],
    node: Annotated[str | None, typer.Option("--node", "-n", help="Node of the inventory.", show_default=False)] = None,
    model: Annotated[
        str | None, typer.Option("--model", help="For a kill of one process: whose.", show_default=False)
    ] = None,
    hold: Annotated[str, typer.Option("--hold", help="How long it stays in force.")] = "10s",
    inventory: Inventory = None,
    yes: Yes = False,
    as_json: Json = False,
) -> None:
    """One fault by hand: struck, proved, held, healed, proved."""
    from rig.cli.inject import inject as command

    _exit(command(kind=kind, node=node, model=model, hold=hold, inventory=inventory, yes=yes, as_json=as_json))


@app.command()
def heal(
    *,
    inventory: Inventory = None,
    yes: Annotated[
        bool, typer.Option("--yes", "-y", help="Do not ask, also where that ends faults of a run that is alive.")
    ] = False,
    as_json: Json = False,
) -> None:
    """Undo every fault whose lease is still on a node. Needs no journal of the run that left it."""
    from rig.cli.heal import heal as command

    _exit(command(inventory=inventory, yes=yes, as_json=as_json))


@app.command()
def doctor(
    *,
    inventory: Inventory = None,
    faults: Annotated[
        str | None, typer.Option("--faults", "-f", help="The plan whose needs are checked. [the target's own]")
    ] = None,
    rehearse: Annotated[
        bool,
        typer.Option("--rehearse", help="Strike and heal every fault of the plan once, and one that must not work."),
    ] = False,
    rehearse_restart: Annotated[
        bool,
        typer.Option(
            "--rehearse-restart", help="Stop and start the target once on each node, so that crash faults are allowed."
        ),
    ] = False,
    evaluate: Annotated[
        bool, typer.Option("--evaluate/--no-evaluate", help="Also compute one MLX expression on each node.")
    ] = True,
    yes: Yes = False,
    as_json: Json = False,
) -> None:
    """Check of every node, with the remedy for what is wrong. Read-only unless something is rehearsed."""
    from rig.cli.doctor import doctor as command

    _exit(
        command(
            inventory=inventory,
            faults=faults,
            rehearse=rehearse,
            rehearse_restart=rehearse_restart,
            evaluate=evaluate,
            yes=yes,
            as_json=as_json,
        )
    )


@app.command()
def bootstrap(
    *,
    inventory: Inventory = None,
    faults: Annotated[
        str | None,
        typer.Option("--faults", "-f", help="The plan whose faults the nodes are to allow. [the target's own]"),
    ] = None,
    node: Annotated[
        list[str] | None, typer.Option("--node", "-n", help="Only this node; may be repeated.", show_default=False)
    ] = None,
    remove: Annotated[bool, typer.Option("--remove", help="Take away exactly what was made.")] = False,
    yes: Yes = False,
    as_json: Json = False,
) -> None:
    """Node guard, narrow sudo rights and folders on the nodes: said first, made with --yes, undone with --remove."""
    from rig.cli.bootstrap import bootstrap_nodes as command

    _exit(command(inventory=inventory, faults=faults, node=node or [], remove=remove, yes=yes, as_json=as_json))


@app.command()
def init(
    *,
    hosts: Annotated[list[str], typer.Argument(metavar="HOST…", help="[user@]host[:port] of each node; or URLs.")],
    target: Annotated[str, typer.Option("--target", help="The system that they run, such as openai.")] = DEFAULT,
    key: Annotated[Path | None, typer.Option("--key", help="SSH private key.", show_default=False)] = None,
    out: Annotated[Path, typer.Option("--out", "-o", help="The inventory to write.")] = Path("inventories/mine.yaml"),
    force: Annotated[bool, typer.Option("--force", help="Overwrite the file.")] = False,
) -> None:
    """Look at a cluster and write a commented inventory of it.

    Hosts are reached over SSH. Any OpenAI-compatible servers are given by their URLs:

      rig init studio-1.local studio-2.local

      rig init --target openai http://localhost:8080 http://localhost:8081
    """
    from rig.cli.init import init as command

    _exit(command(hosts=hosts, key=key, out=out, force=force, target=target))


@app.command()
def report(
    *,
    run: RunArgument = "last",
    as_json: Json = False,
    markdown: Annotated[bool, typer.Option("--markdown", help="For a pull request.")] = False,
    html: Annotated[bool, typer.Option("--html", help="Only print where report.html is.")] = False,
    open_it: Annotated[bool, typer.Option("--open", help="Open report.html in a browser.")] = False,
    parquet: Annotated[bool, typer.Option("--parquet", help="Write column files as well; needs rig[parquet].")] = False,
) -> None:
    """The tables of a run, from its journal alone; also of a run that was killed.

    Brings summary.md, summary.json, junit.xml and report.html in the run's folder up to date.
    """
    from rig.cli.report import report as command

    _exit(command(run=run, as_json=as_json, markdown=markdown, html=html, open_it=open_it, parquet=parquet))


@app.command()
def compare(
    *,
    runs: Annotated[list[str], typer.Argument(metavar="BASE HEAD [MORE…]", help="Runs; the first is the base.")],
    fail_on_regression: Annotated[
        bool, typer.Option("--fail-on-regression", help="Exit code 1 when something got worse beyond noise.")
    ] = False,
    force: Annotated[bool, typer.Option("--force", help="Compare runs that differ in what they ran.")] = False,
    as_json: Json = False,
    markdown: Annotated[bool, typer.Option("--markdown", help="For a pull request.")] = False,
) -> None:
    """Runs beside a base: what got worse beyond noise, in losses, times to serve and latencies."""
    from rig.cli.compare import compare as command

    _exit(command(runs=runs, fail_on_regression=fail_on_regression, force=force, as_json=as_json, markdown=markdown))


@app.command()
def history(
    *,
    results: Annotated[Path, typer.Argument(metavar="DIR", help="Where runs are kept.")] = Path("results"),
    last: Annotated[int | None, typer.Option("--last", help="Only so many of the latest.", show_default=False)] = None,
    as_json: Json = False,
    html: Annotated[bool, typer.Option("--html", help="Write DIR/history.html.")] = False,
) -> None:
    """All runs with verdict and headline figures, and the trend over nights."""
    from rig.cli.history import history as command

    _exit(command(results=results, last=last, as_json=as_json, html=html))


@app.command()
def show(
    *,
    run: RunArgument = "last",
    fault: Annotated[int | None, typer.Option("--fault", help="Number of the fault.", show_default=False)] = None,
    request: Annotated[str | None, typer.Option("--request", help="Id of the request.", show_default=False)] = None,
) -> None:
    """The timeline around one fault or one request: journal, views, log lines, the tail of the stream."""
    from rig.cli.show import show as command

    _exit(command(run=run, fault=fault, request=request))


@app.command()
def explain(
    *,
    word: Annotated[
        str | None, typer.Argument(metavar="WORD", help="A check, a figure, a kind of fault. [all]", show_default=False)
    ] = None,
) -> None:
    """What a word of the reports means."""
    from rig.cli.explain import explain_word as command

    _exit(command(word=word))


@app.command()
def load(
    *,
    url: Annotated[str, typer.Option("--url", help="Base URL of an OpenAI-compatible server.")],
    model: Annotated[
        str | None,
        typer.Option("--model", "-m", help="Model id; by default the one the server offers.", show_default=False),
    ] = None,
    clients: Annotated[int, typer.Option("--clients", "-c", help="Closed-loop clients.")] = 12,
    requests: Annotated[int, typer.Option("--requests", "-n", help="Requests in all.")] = 40,
    stream: Annotated[bool, typer.Option("--stream/--no-stream", help="Streamed answers.")] = True,
    progress_deadline: Annotated[str, typer.Option("--progress-deadline", help="No token for so long: hung.")] = "120s",
    total_deadline: Annotated[str, typer.Option("--total-deadline", help="Not ended after so long: overdue.")] = "300s",
    max_tokens: Annotated[int, typer.Option("--max-tokens", help="Tokens asked for.")] = 64,
    rate: Annotated[
        float | None, typer.Option("--rate", help="Open loop: requests a second.", show_default=False)
    ] = None,
    seed: Seed = None,
    canaries: Annotated[
        float,
        typer.Option(
            "--canaries",
            min=0.0,
            max=1.0,
            metavar="SHARE",
            help="Share of the requests whose answers are compared, alone and among others.",
            show_default=False,
        ),
    ] = 0.0,
    out: Annotated[
        Path | None, typer.Option("--out", help="Keep the journal in this folder.", show_default=False)
    ] = None,
    api_key: Annotated[
        str | None,
        typer.Option(
            "--api-key",
            help="API key; better in OPENAI_API_KEY, unseen by ps.",
            metavar="KEY",
            show_default=False,
        ),
    ] = None,
    header: Annotated[
        list[str] | None,
        typer.Option("--header", "-H", help="`Name: value`, sent with each request.", show_default=False),
    ] = None,
    cacert: Annotated[
        Path | None, typer.Option("--cacert", help="Trust the certificates in this file alone.", show_default=False)
    ] = None,
    insecure: Annotated[bool, typer.Option("--insecure", help="Trust any certificate.")] = False,
    as_json: Json = False,
) -> None:
    """The load alone, against any OpenAI-compatible server; directly, past any proxy."""
    from rig.cli.load import load as command

    _exit(
        command(
            url=url,
            model=model,
            clients=clients,
            requests=requests,
            stream=stream,
            progress_deadline=progress_deadline,
            total_deadline=total_deadline,
            max_tokens=max_tokens,
            rate=rate,
            seed=seed,
            canaries=canaries,
            out=out,
            as_json=as_json,
            api_key=api_key,
            headers=header or (),
            cacert=cacert,
            insecure=insecure,
        )
    )


@cluster.command()
def up(
    *,
    inventory: Annotated[str, typer.Option("--inventory", "-i", help="An inventory with `embedded:`.")] = "embedded",
    for_: Annotated[str, typer.Option("--for", help="It ends by itself after so long.")] = "2h",
    folder: Annotated[
        Path | None, typer.Option("--folder", help="Where it keeps its state.", show_default=False)
    ] = None,
    inert: Annotated[
        str | None, typer.Option("--inert", help="kill,nft: commands that do nothing on the nodes.", show_default=False)
    ] = None,
    foreground: Annotated[bool, typer.Option("--foreground", help="Stay attached; Ctrl-C ends it.")] = False,
    as_json: Json = False,
) -> None:
    """Start it; prints the API URLs, the SSH commands and the inventory to use."""
    from rig.cli.cluster import up as command

    _exit(command(inventory=inventory, for_=for_, folder=folder, inert=inert, foreground=foreground, as_json=as_json))


@cluster.command()
def down(*, folder: Annotated[Path | None, typer.Option("--folder", show_default=False)] = None) -> None:
    """End it and everything it started."""
    from rig.cli.cluster import down as command

    _exit(command(folder=folder))


@cluster.command()
def status(
    *, folder: Annotated[Path | None, typer.Option("--folder", show_default=False)] = None, as_json: Json = False
) -> None:
    """Whether it runs, and the state of each node."""
    from rig.cli.cluster import status as command

    _exit(command(folder=folder, as_json=as_json))


def _exit(code: int) -> NoReturn:
    raise typer.Exit(code)


def main() -> NoReturn:
    """Entry point of the `rig` script: every error of the rig's own is one message and its exit code."""
    streams = Streams()
    code = _run()
    unsaid = streams.finish()
    if unsaid is not None:
        print(f"rig: not everything could be written to standard output: {unsaid.strerror}", file=sys.stderr)
        code = code or EXIT_UNKNOWN
    sys.exit(code)


def _run() -> int:
    try:
        app(standalone_mode=True, prog_name="rig")
    except SystemExit as ended:
        return ended.code if isinstance(ended.code, int) else EXIT_PASS
    except RigError as error:
        print(f"rig: {error}", file=sys.stderr)
        return error.exit_code
    except KeyboardInterrupt:
        return EXIT_SIGINT
    return EXIT_PASS
