"""A process that has imported what training needs and forks one child a job: ``python -m trainers.warm PARENT``.

Importing PyTorch, Transformers and TRL takes longer than a short job does. Each line of standard input is the folder
of a job, as JSON; the child writes there, its output goes into ``log.txt``, and its exit status comes back as a line.
"""

from __future__ import annotations

import gc
import importlib
import json
import os
import sys
import traceback
from pathlib import Path
from typing import NoReturn

from trainers import run

LOG = "log.txt"
JOB = "job.json"

_IMPORTED = {
    "agent_world.world": ("open",),
    "datasets": ("Dataset",),
    "trainers.trl_backend": ("train",),
    "transformers": ("AutoModelForCausalLM", "AutoTokenizer", "LlamaForCausalLM", "PreTrainedTokenizerFast"),
    "trl": ("GRPOConfig", "GRPOTrainer"),
}
"""What jobs use; the libraries among them import what they hold when it is asked for."""


def main(parent: int) -> None:
    """Serve jobs, one at a time, until standard input ends or the parent dies."""
    run.die_with(parent)
    for module, names in _IMPORTED.items():
        for name in names:
            getattr(importlib.import_module(module), name)
    gc.freeze()  # what is shared with children stays shared
    here = os.getpid()
    for line in sys.stdin:
        child = os.fork()
        if not child:
            _do(Path(json.loads(line)), here)
        _, status = os.waitpid(child, 0)
        print(os.waitstatus_to_exitcode(status), flush=True)


def _do(folder: Path, parent: int) -> NoReturn:
    """The child: does the job and ends, whatever happens."""
    status = 1
    try:
        log = os.open(folder / LOG, os.O_WRONLY | os.O_APPEND | os.O_CREAT)
        os.dup(1)  # held open, so that the supervisor can tell when this process is gone
        os.dup2(os.open(os.devnull, os.O_RDONLY), 0)
        os.dup2(log, 1)
        os.dup2(log, 2)
        status = run.main([str(folder / JOB), "--out", str(folder), "--parent", str(parent)])
    except BaseException:
        traceback.print_exc()
    finally:
        sys.stdout.flush()
        sys.stderr.flush()
        os._exit(status)


if __name__ == "__main__":
    main(int(sys.argv[1]))
