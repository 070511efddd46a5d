"""The whole campaign, or some of it: counts by family, and the table of docs/reliability.md.

python tests/campaign/run.py                      # all, on two processes
python tests/campaign/run.py --family images --every 10
python tests/campaign/run.py --only 'images/png: empty, refused'
python tests/campaign/run.py --write docs/reliability.md
"""

import argparse
import os
import sys
import time
from concurrent.futures import ProcessPoolExecutor
from multiprocessing import get_context
from pathlib import Path

os.environ.setdefault("OMP_NUM_THREADS", "1")
os.environ.setdefault("DCDC_BACKBONE", "scratch")
if __name__ == "__main__":
    sys.path[0] = str(Path(__file__).parents[1])

from campaign.families import FAMILIES, Family, Found
from campaign.table import row_of, table_of, write_rows


def main() -> None:
    asked = _asked()
    families = [FAMILIES[name] for name in asked.family or FAMILIES]
    if asked.only:
        name, _, case = asked.only.partition("/")
        found = FAMILIES[name].run(only=case)
        sys.exit("\n".join(f"{each}: {fault}" for each, fault in found.faults.items()) or 0)
    counts = []
    for family in families:
        started = time.perf_counter()
        found = _by_several(family, asked.every, asked.jobs)
        counts.append((family, found))
        seconds = time.perf_counter() - started
        told = f"{found.n} {family.unit}, {len(found.faults)} failures, {seconds:.0f} s"
        print(f"{family.name}: {told}", flush=True)
    rows = {family.name: row_of(family, found) for family, found in counts}
    print(table_of(rows.values()))
    if asked.write:
        write_rows(asked.write, rows)
    sys.exit(any(found.faults for _, found in counts))


def _by_several(family: Family, every: int, jobs: int) -> Found:
    if jobs == 1:
        return family.run(every=every)
    with ProcessPoolExecutor(jobs, mp_context=get_context("fork")) as pool:
        family.begin()  # what is made once is made before the fork
        parts = [pool.submit(_part, family.name, every, share, jobs) for share in range(jobs)]
        return Found.joined([part.result() for part in parts])


def _part(name: str, every: int, share: int, jobs: int) -> Found:
    return FAMILIES[name].run(every=every, share=(share, jobs))


def _asked() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--family", action="append", choices=list(FAMILIES))
    parser.add_argument("--every", type=int, default=1, help="only each n-th input of a family")
    parser.add_argument("--jobs", type=int, default=2)
    parser.add_argument("--only", help="FAMILY/NAME of one input")
    parser.add_argument("--write", type=Path, help="page whose table is written anew")
    return parser.parse_args()


if __name__ == "__main__":
    main()
