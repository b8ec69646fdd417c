"""Who vouches for which snapshot."""

from __future__ import annotations

from lake_schemas.base import TableSpec, text

TABLE = TableSpec(
    name="signatures",
    shape="fact",
    meaning="Ed25519 signatures of snapshots.",
    key=("snapshot_id", "public_key"),
    columns=(
        text("snapshot_id", "the snapshot that is vouched for"),
        text("public_key", "raw public key of the signer, in hex"),
        text("signature", "signature of the text 'agent-world snapshot ' and the snapshot id, in hex"),
    ),
)
