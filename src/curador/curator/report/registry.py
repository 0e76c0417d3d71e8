"""The record of a study for the public registry of deployments of differential privacy, as far as a study knows its fields.

Names of fields and the values that some of them must have are those of `schemas/deployments-schema.yaml` in the registry's
data, github.com/opendp/deployments-registry-data, as of July 2026. The record is JSON, which YAML can read. What a study
cannot know is an empty text: who publishes it, why, where and when is for people to say.
"""

from __future__ import annotations

from collections.abc import Mapping
from fractions import Fraction
from typing import TYPE_CHECKING, Any, Final, cast

from curador.curator.report.guideline import answer_to
from curador.curator.report.words import ORIGINS, caps_words

if TYPE_CHECKING:
    from collections.abc import Iterator

SOURCE: Final = "https://github.com/opendp/deployments-registry-data/blob/main/schemas/deployments-schema.yaml"
UNKNOWN: Final = ""


def registry_record(record: Mapping[str, Any]) -> dict[str, Any]:
    """Return the record of a deployment, as a draft of the highest tier; what a study cannot know is empty."""
    protected, promise, unit = record["protected"], record["promise"], record["protected"]["unit"]
    pure = promise["kind"] == "pure"
    return {
        "url_slug": UNKNOWN,
        "status": "Draft",
        "tier": 3,
        "deployment": {
            "basic": {
                "name": record["study"]["name"],
                "data_curators": [UNKNOWN],
                "intended_use": UNKNOWN,
                "data_product_type": "SQL queries",
                "data_product_region": UNKNOWN,
                "description": UNKNOWN,
                "publication_date": UNKNOWN,
                "data_product_sector": UNKNOWN,
            },
            "dp_variant": {
                "variant_name": "Pure DP" if pure else "Approximate DP",
                "data_domain": _domain(record),
                "unprotected_quantities": _unprotected(record),
            },
            "privacy_loss": {
                "privacy_unit": unit,
                "privacy_unit_details": " ".join(protected["words"]),
                "privacy_parameters": _parameters(promise),
                "privacy_parameters_details": _parameters_words(promise),
            },
            "deployment_model": {
                "model_name": "Central",
                "model_name_details": answer_to("4.2", record),
                "actors": UNKNOWN,
                "release_type": "Many releases",
                "release_type_details": "One budget for ever, over all data versions. It is never renewed.",
                "data_source_type": _source_type(record),
                "data_source_type_details": UNKNOWN,
                "access_type": "Interactive",
                "access_type_details": _access(record),
            },
            "accounting": {
                "post_processing": "What is computed from released numbers costs nothing and is part of the question.",
                "composition": _composition(promise),
            },
            "implementation": {
                "preprocessing_and_hyperparameter_tuning": _tuning(record),
                "mechanisms": f"{answer_to('3.1', record)} {answer_to('4.3', record)}"
                f" Software: curador {record['software']['curador']}.",
                "justification": UNKNOWN,
            },
            "administrative": {"sources": UNKNOWN, "notes": UNKNOWN, "registry_authors": [UNKNOWN]},
        },
    }


def missing_fields(made: Mapping[str, Any]) -> list[str]:
    """Return the names of fields that are empty, with dots between."""
    return [".".join(path) for path, value in _leaves(made) if value in (UNKNOWN, [UNKNOWN])]


def _leaves(value: object, path: tuple[str, ...] = ()) -> Iterator[tuple[tuple[str, ...], object]]:
    if isinstance(value, Mapping):
        for name, inside in cast("Mapping[str, object]", value).items():
            yield from _leaves(inside, (*path, name))
    else:
        yield path, value


def _parameters(promise: Mapping[str, Any]) -> dict[str, float]:
    """Return what the promise costs, as floats: the registry has no exact numbers. Rounds: up."""
    from curador.numerics.rounding import float_up

    names = ("epsilon", "delta", "rho")
    return {name: float_up(Fraction(promise[name]["exact"])) for name in names if promise[name] is not None}


def _parameters_words(promise: Mapping[str, Any]) -> str:
    words = " ".join(promise["belief_words"])
    counted = "" if promise["rho"] is None else " The budget is counted as ρ of zero-concentrated privacy."
    return f"Of all releases together, for ever, to all analysts.{counted} {words}"


def _domain(record: Mapping[str, Any]) -> str:
    tables = [table for table in record["tables"] if not table["public"]]
    return "; ".join(
        f"{table['name']} ({', '.join(str(column['name']) for column in table['columns'] if column['declared'])})"
        for table in tables
    )


def _unprotected(record: Mapping[str, Any]) -> str:
    public = [str(table["name"]) for table in record["tables"] if table["public"]]
    tables = f"Public tables: {', '.join(public)}." if public else "No table is public."
    return f"{tables} Declared bounds, lists of values and caps are public. That a question failed may tell one bit."


def _source_type(record: Mapping[str, Any]) -> str:
    ledger = record["ledger"]
    if ledger is None:
        return UNKNOWN
    return "Dynamic" if ledger["data_version"] > 1 else "Static"


def _access(record: Mapping[str, Any]) -> str:
    shares = [f"an analyst with {one['share']}" for one in record["analysts"]]
    told = f"Shares: {', '.join(shares)}." if shares else "The owner alone asks."
    return f"{told} Shares are quotas inside one budget: nothing is assumed of analysts not working together."


def _composition(promise: Mapping[str, Any]) -> str:
    if promise["kind"] == "pure":
        return "Sequential: the ε of all questions add up to at most that of the budget, however each is chosen."
    return "The ρ of all questions add up, however each is chosen, and are converted into (ε, δ) once, for ever."


def _tuning(record: Mapping[str, Any]) -> str:
    unit = record["protected"]["unit"]
    tables = [table for table in record["tables"] if not table["public"]]
    return "; ".join(
        f"{table['name']}: {caps_words(table['caps'], unit)}, {ORIGINS[table['caps']['origin']]}" for table in tables
    )
