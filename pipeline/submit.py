"""The script that ``spark-submit`` runs: ``spark-submit … pipeline/submit.py ingest --bootstrap-servers …``.

The options before the script are Spark's (master, memory, jars or packages, ``--py-files`` with rackwise's wheel as a
zip file); those after it are rackwise's. Exit codes are those of ``rackwise``.
"""

from __future__ import annotations

import sys
from pathlib import Path
from typing import NoReturn


def main() -> NoReturn:
    """Run one command and leave with its exit code."""
    # spark-submit puts this script's folder first on the path, where modules would be found without their package.
    folder = str(Path(__file__).resolve().parent)
    sys.path[:] = [place for place in sys.path if place != folder]
    from agent.errors import RackwiseError, error_lines  # noqa: PLC0415 the path is set first
    from config.foreign_text import shortened  # noqa: PLC0415 as above
    from config.secrets import hidden  # noqa: PLC0415 as above
    from pipeline.cli import spark_app  # noqa: PLC0415 as above

    try:
        spark_app(prog_name="rackwise spark")
    except RackwiseError as error:
        print(error_lines(error, lambda text: shortened(hidden(text))), file=sys.stderr)  # noqa: T201 the command line talks to a person
        sys.exit(error.exit_code)
    except KeyboardInterrupt:
        sys.exit(130)
    sys.exit(0)


if __name__ == "__main__":
    main()
