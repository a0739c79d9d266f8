# syntax=docker/dockerfile:1
# The agent's image (target agent), and on top of it the pipeline on Spark (target pipeline) and the demo's workload
# (target workload).

ARG PYTHON=3.11-slim-bookworm

# What the agent runs on, notifications among it: exactly what the lock file names, each file checked against its hash.
FROM python:${PYTHON} AS dependencies
ENV PIP_DISABLE_PIP_VERSION_CHECK=1 PIP_NO_CACHE_DIR=1
COPY requirements-notify.lock /build/
RUN python -m venv /opt/rackwise \
 && /opt/rackwise/bin/pip install --require-hashes -r /build/requirements-notify.lock

# The plug-in for brokers, which `rackwise plugin jar` writes out, and the pipeline's log of tables in S3.
FROM python:${PYTHON} AS jar
RUN apt-get update \
 && apt-get install --yes --no-install-recommends openjdk-17-jdk-headless maven \
 && rm -rf /var/lib/apt/lists/*
COPY jvm /build/jvm
RUN mvn -B -q -f /build/jvm/pom.xml package -Dmaven.test.skip=true \
 && mvn -B -q -f /build/jvm/tables/pom.xml package

# The wheel is built with the locked build tools and never gets them into the image.
FROM python:${PYTHON} AS wheel
ENV PIP_DISABLE_PIP_VERSION_CHECK=1 PIP_NO_CACHE_DIR=1
WORKDIR /build
COPY requirements-dev.lock ./
RUN pip install --require-hashes -r requirements-dev.lock
COPY pyproject.toml pom.xml README.md LICENSE ./
COPY agent agent
COPY assignors assignors
COPY config config
COPY pipeline pipeline
COPY testbed testbed
COPY --from=jar /build/jvm/target/rackwise-kafka.jar agent/cli/jars/
COPY --from=jar /build/jvm/tables/target/rackwise-tables.jar pipeline/jars/
RUN pip wheel --no-deps --no-build-isolation --wheel-dir /dist .

FROM dependencies AS installed
COPY --from=wheel /dist /dist
RUN /opt/rackwise/bin/pip install --no-deps --no-index /dist/*.whl \
 && /opt/rackwise/bin/python -m compileall -q /opt/rackwise/lib

FROM python:${PYTHON} AS agent
LABEL org.opencontainers.image.title="rackwise" \
      org.opencontainers.image.description="An agent beside a live Kafka cluster that keeps Kafka's work in the right rack." \
      org.opencontainers.image.version="0.1.0" \
      org.opencontainers.image.licenses="Apache-2.0"
# A user without a home to write to: the root file system may be read-only.
RUN useradd --system --uid 10001 --no-create-home --shell /usr/sbin/nologin rackwise
COPY --from=installed /opt/rackwise /opt/rackwise
ENV PATH=/opt/rackwise/bin:$PATH PYTHONUNBUFFERED=1 PYTHONDONTWRITEBYTECODE=1
USER 10001:10001
WORKDIR /tmp
EXPOSE 9464
HEALTHCHECK --interval=10s --timeout=3s --start-period=30s --retries=3 \
  CMD ["python", "-m", "agent.web.health_probe"]
ENTRYPOINT ["rackwise"]
CMD ["run"]

# Spark on this one machine, with its connectors, those of object stores among them; `docker run IMAGE report --out ...` and so on.
FROM agent AS pipeline
USER 0:0
COPY requirements-spark.lock /build/
RUN apt-get update \
 && apt-get install --yes --no-install-recommends openjdk-17-jre-headless maven procps \
 && rm -rf /var/lib/apt/lists/* \
 && /opt/rackwise/bin/pip install --require-hashes -r /build/requirements-spark.lock \
 && install -d -o 10001 -g 10001 /var/lib/rackwise
ENV RACKWISE_CACHE=/opt/rackwise-cache
RUN python -c "from pipeline.maven import spark_jars; spark_jars(print, ('s3a', 'gs', 'abfs'))" \
 && rm -rf ~/.m2
USER 10001:10001
HEALTHCHECK NONE
ENTRYPOINT ["rackwise", "spark"]
CMD ["--help"]

# Real consumer groups and a real Kafka Streams application; its jars and classes are made while building.
FROM agent AS workload
USER 0:0
RUN apt-get update \
 && apt-get install --yes --no-install-recommends openjdk-17-jdk-headless maven \
 && rm -rf /var/lib/apt/lists/*
ENV RACKWISE_CACHE=/opt/rackwise-cache RACKWISE_STATE=/tmp/rackwise
RUN python -m testbed.demo.workload --compile-only \
 && rm -rf ~/.m2
USER 10001:10001
HEALTHCHECK NONE
ENTRYPOINT ["python", "-m", "testbed.demo.workload"]
CMD ["--help"]
