# syntax=docker/dockerfile:1

# This stage needs npm to install the packages. Node itself is one of the packages, in the lockfile's version.
FROM node:22-trixie-slim AS packages
WORKDIR /app
# A library that this Node needs and Debian's slim image lacks.
RUN apt-get update && apt-get install -y --no-install-recommends libatomic1 && rm -rf /var/lib/apt/lists/*
COPY package.json package-lock.json .npmrc ./
# A workspace, without which the lockfile does not fit.
COPY packages/client/package.json packages/client/
# Remove headers and source maps (70 MB), which are not needed at run time.
RUN npm ci --omit=dev --ignore-scripts \
 && rm -rf node_modules/node-linux-*/include node_modules/swagger-ui-dist/*.map
COPY bin bin
COPY migrations migrations
COPY src src
# The embedded server creates links to its libraries at the first start. Create them now, because the image's user cannot write there.
# `--version` checks that this Node runs on this system.
RUN node_modules/.bin/node --input-type=module -e \
      "import { findBinaries } from './src/kernel/db/embedded/binaries.ts'; await findBinaries()" \
 && node_modules/.bin/node bin/gatehouse.mjs --version

# Debian, because the binaries of Node and PostgreSQL need glibc.
FROM debian:trixie-slim
# PostgreSQL's initdb needs a user with a name in /etc/passwd.
RUN apt-get update && apt-get install -y --no-install-recommends ca-certificates libatomic1 \
 && rm -rf /var/lib/apt/lists/* \
 && useradd --uid 10001 --user-group --home-dir /data --no-create-home --shell /usr/sbin/nologin gatehouse \
 && install -d -o gatehouse -g gatehouse -m 0700 /data
WORKDIR /app
COPY --from=packages /app .
COPY LICENSE .
ENV NODE_ENV=production \
    PATH=/app/node_modules/.bin:$PATH \
    SERVICE_SERVER__HOST=0.0.0.0 \
    SERVICE_SERVER__DATA_DIR=/data
# By number, so that Kubernetes can verify that it is not root.
USER 10001:10001
VOLUME /data
EXPOSE 8080
STOPSIGNAL SIGTERM
HEALTHCHECK --interval=10s --timeout=5s --start-period=60s \
  CMD ["node", "-e", "fetch(`http://127.0.0.1:${process.env.SERVICE_SERVER__PORT || 8080}/health/ready`).then((answer) => process.exit(answer.ok ? 0 : 1), () => process.exit(1))"]
ENTRYPOINT ["node", "--disable-sigusr1", "/app/bin/gatehouse.mjs"]
CMD ["serve"]
