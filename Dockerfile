# One image for every server of ours (compose.yaml). Debian 12, because the sandbox runs tools on Debian's Python.
ARG BASE_IMAGE=debian:12
FROM ${BASE_IMAGE}

RUN apt-get update \
    && apt-get install -y --no-install-recommends ca-certificates make python3 python3-venv \
    && rm -rf /var/lib/apt/lists/*

WORKDIR /opt/agent-world
ENV AGENT_WORLD_CACHE=/var/cache/agent-world \
    XDG_DATA_HOME=/var/lib/agent-world \
    PATH=/opt/agent-world/.venv/bin:$PATH \
    DAGSTER_DISABLE_TELEMETRY=1 \
    MLFLOW_DISABLE_TELEMETRY=true \
    GX_ANALYTICS_ENABLED=false \
    HF_HUB_DISABLE_TELEMETRY=1 \
    DO_NOT_TRACK=true

# Apart from the rest, so that a changed source does not fetch Debian's packages again.
COPY Makefile ./
RUN make deps-system && rm -rf /var/lib/apt/lists/*

COPY . .
RUN make install \
    && python -m compileall -q agent_world assets dagster_project expectations lake_schemas trainers \
    && useradd --create-home --uid 1000 agent-world \
    && mkdir -p "$AGENT_WORLD_CACHE" "$XDG_DATA_HOME" \
    && chown -R agent-world: "$AGENT_WORLD_CACHE" "$XDG_DATA_HOME"

USER agent-world
CMD ["agent-world", "--help"]
