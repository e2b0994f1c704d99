"""A fault plan from its file, by itself and together with the inventory and the workload of a run."""

from __future__ import annotations

from rig.config.check import workload_on_inventory
from rig.config.inventory import Inventory
from rig.config.problems import error_of, locate
from rig.config.read import Loaded, read_file, read_inventory, read_workload
from rig.config.target_fields import fields_of
from rig.config.workload import Workload
from rig.faults.plan import check
from rig.faults.plan.plan import PLAN_FILE, Plan, plan_of


def load_plan(name_or_path: str) -> Plan:
    """The fault plan of this name or path. Raises ConfigError."""
    return read_plan(name_or_path).value


def read_plan(name_or_path: str) -> Loaded[Plan]:
    """The same, with the place of each value."""
    written = read_file(name_or_path, "faults", PLAN_FILE, check.written_problems)
    paths = [path for path in written.source.places if path[:1] == ("kinds",) and len(path) == 2]  # as they stand there
    plan = plan_of(written.value, (str(kind) for _, kind in paths))
    found = check.plan_problems(plan)
    if found:
        raise error_of(locate(written.source, found))
    return Loaded(plan, written.source)


def load_all(inventory: str, workload: str | None, plan: str | None) -> tuple[Inventory, Workload, Plan]:
    """The three files of a run, each sound and fit for the others. Raises ConfigError, for all files at once.

    Without a workload or a plan it is the one of the inventory's target.
    """
    nodes = read_inventory(inventory)
    target = nodes.value.target
    usual = fields_of(target)
    found = (nodes, read_workload(workload or usual.workload, target), read_plan(plan or usual.plan))
    check_together(*found)
    return found[0].value, found[1].value, found[2].value


def check_together(inventory: Loaded[Inventory], workload: Loaded[Workload], plan: Loaded[Plan]) -> None:
    """Raises ConfigError if the three do not fit each other."""
    problems = [
        *locate(inventory.source, check.inventory_for_plan(inventory.value, plan.value)),
        *locate(workload.source, workload_on_inventory(workload.value, inventory.value)),
        *locate(plan.source, check.plan_on_inventory(plan.value, inventory.value)),
    ]
    if problems:
        raise error_of(problems)
