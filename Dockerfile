# syntax=docker/dockerfile:1

# npm is needed to install, and only there: Node itself is one of the packages, in the version of the lockfile.
FROM node:22-trixie-slim AS packages
WORKDIR /app
# What that Node needs and Debian's small image lacks.
RUN apt-get update && apt-get install -y --no-install-recommends libatomic1 && rm -rf /var/lib/apt/lists/*
COPY package.json package-lock.json .npmrc ./
# Headers and source maps, 70 MB, are for building and debugging other things.
RUN npm ci --omit=dev --ignore-scripts \
 && rm -rf node_modules/node-linux-*/include node_modules/swagger-ui-dist/*.map
COPY bin bin
COPY migrations migrations
COPY src src
# The embedded server makes its library links at its first start; in the image its user may not write there.
# `--version` shows that this Node runs on this system.
RUN node_modules/.bin/node --input-type=module -e \
      "import { findBinaries } from './src/kernel/db/embedded/binaries.ts'; await findBinaries()" \
 && node_modules/.bin/node bin/gatehouse.mjs --version

# With glibc, which the binaries of Node and PostgreSQL are built for.
FROM debian:trixie-slim
# The user has a name in /etc/passwd because PostgreSQL's initdb asks for it.
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
# By number, so that a cluster can see that it is not root.
USER 10001:10001
VOLUME /data
EXPOSE 8080
STOPSIGNAL SIGTERM
HEALTHCHECK --interval=10s --timeout=5s --start-period=60s \
  CMD ["node", "-e", "fetch(`http://127.0.0.1:${process.env.SERVICE_SERVER__PORT || 8080}/health/ready`).then((answer) => process.exit(answer.ok ? 0 : 1), () => process.exit(1))"]
ENTRYPOINT ["node", "--disable-sigusr1", "/app/bin/gatehouse.mjs"]
CMD ["serve"]
