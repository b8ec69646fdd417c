"""What is set aside, as one line for people: which file, row or tool, what is wrong with it, and what to do."""

from __future__ import annotations

from agent_world.discovery.model import Quarantined

_RAW = 65_536  # bytes kept of what was set aside

_CURES = {
    "bad_input_schema": "let it be an object schema",
    "bad_output_schema": "let it be an object schema, or leave it out",
    "broken_archive": "pack the file again",
    "broken_document": "check what wrote the file",
    "broken_json": "check the file with a JSON parser",
    "broken_json_line": "mend or delete the line",
    "broken_parquet": "write the file again",
    "broken_sqlite": "restore the file from its source",
    "broken_xml": "check the file with an XML parser",
    "dangling_ref": "define it, or take the reference out",
    "duplicate_theme": "keep one of them",
    "duplicate_tool": "list it once",
    "empty": "fill the file or delete it",
    "invalid_schema": "correct it after the JSON Schema specification",
    "name_collision": "rename one of them",
    "nested_too_deep": "flatten the document",
    "no_answer": "start the server by hand to see what it says",
    "no_description": "describe it in a sentence or two",
    "no_input_schema": 'give it one, {"type": "object"} if it takes nothing',
    "no_name": "name it",
    "no_title": "give it one",
    "no_tools": "correct its tools, or leave the document out",
    "not_a_prd": "write a Markdown document with headings and some paragraphs",
    "not_a_table": "leave the file out, or give it a header and more rows",
    "not_utf8": "save the file as UTF-8",
    "ragged_file": "quote cells that hold the separator",
    "ragged_row": "correct the row, or quote cells that hold the separator",
}


def fault(stage: str, item: str, reason: str, why: str, raw: bytes) -> Quarantined:
    """`item` set aside for `reason`; `why` says what is wrong, the cure that goes with the reason is added."""
    return Quarantined(stage=stage, item=item, reason=reason, detail=f"{why}; {_CURES[reason]}", raw=raw[:_RAW])
