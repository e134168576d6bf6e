"""The ledgers of a run as files, which the driver writes: for each flow and run a folder, for each round a file.

`session` writes what the tasks of a round have returned. A file appears whole: what Spark and others read as data
has no name that begins with a dot.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

from reconciler.replicator.spark.ledger_schema import COLUMNS


@dataclass(frozen=True)
class LedgerFiles:
    """Where the ledgers of a run are kept: below `folder`, for each flow and run a folder of its own.

    Attributes:
        folder: made when it is missing.
        format: of the files.
    """

    folder: Path
    format: Literal["json", "parquet"] = "json"

    def write(self, flow: str, run: str, number: int, rows: Sequence[tuple[Any, ...]]) -> None:
        """Write the rows of one round, if there are any.

        Args:
            flow: name of the flow.
            run: the run.
            number: of the round, which names the file.
            rows: the values of `ledger_schema.COLUMNS` in their order.

        Raises:
            OSError: it cannot be written.
        """
        if not rows:
            return
        folder = self.folder / flow / run
        folder.mkdir(parents=True, exist_ok=True)
        path = folder / f"part-{number:06d}.{self.format}"
        new = path.with_name(f".{path.name}")
        if self.format == "json":
            new.write_text("".join(_lines(rows)), encoding="utf-8")
        else:
            _write_parquet(new, rows)
        new.replace(path)


def _lines(rows: Iterable[tuple[Any, ...]]) -> Iterable[str]:
    """Yield each row as a line of JSON; what is null is left out, as Spark does."""
    for row in rows:
        values = zip(COLUMNS, row, strict=True)
        yield json.dumps({name: value for name, value in values if value is not None}, ensure_ascii=False) + "\n"


def _write_parquet(path: Path, rows: Sequence[tuple[Any, ...]]) -> None:
    # Half a second of imports that only this format needs.
    import pyarrow as pa  # noqa: PLC0415
    from pyarrow import parquet  # noqa: PLC0415

    types = {"STRING": pa.string(), "INT": pa.int32(), "LONG": pa.int64()}
    schema = pa.schema([(name, types[kind]) for name, kind in COLUMNS.items()])
    columns = [pa.array(values, field.type) for values, field in zip(zip(*rows, strict=True), schema, strict=True)]
    parquet.write_table(pa.table(columns, schema=schema), path)
