"""Reads a download with DuckDB: duck.py PARQUET_DIR NDJSON_DIR. Prints figures as JSON, equal ones from both formats."""

import json
import sys

import duckdb

QUERIES = {
    "agents": "select count(*), count(distinct token_id), sum(feedback)::bigint, count(registered_time) from {}",
    "feedback": "select count(*), sum(value::hugeint)::varchar, count(revoked_block), max(block) from {}",
    "events": "select count(*), count(distinct (block, log_index)), sum(length(data))::bigint, max(block_time)::varchar from {}",
    "changes": "select count(*), count(distinct cursor), max(block), min(data::json->>'owner') from {}",
}


def figures(directory, reader):
    out = {}
    for name, query in QUERIES.items():
        row = duckdb.sql(query.format(reader(f"{directory}/{name}"))).fetchall()[0]
        out[name] = [v if isinstance(v, (int, str, type(None))) else str(v) for v in row]
    return out


def parquet(path):
    return f"read_parquet('{path}/part-*.parquet')"


def ndjson(path):
    return f"read_json('{path}/part-*.ndjson', format = 'newline_delimited')"


if __name__ == "__main__":
    duckdb.sql("set timezone = 'UTC'")
    first, second = figures(sys.argv[1], parquet), figures(sys.argv[2], ndjson)
    types = {name: {c[0]: str(c[1]) for c in duckdb.sql(f"describe select * from {parquet(sys.argv[1] + '/' + name)}").fetchall()}
             for name in QUERIES}
    print(json.dumps({"parquet": first, "ndjson": second, "types": types}))
