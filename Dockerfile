# The server and the command line, from this checkout: docs/install.md. Built by nobody yet, because
# where it was written there is no Docker; the commands in it were run by hand.
FROM node:24-slim AS build
WORKDIR /src
COPY . .
RUN npm ci && npm pack --silent --pack-destination /

FROM node:24-slim
# Hooks, worktrees and projects are about git.
RUN apt-get update && apt-get install --yes --no-install-recommends git \
  && rm -rf /var/lib/apt/lists/*
COPY --from=build /leasehold-*.tgz /leasehold.tgz
RUN npm install --global /leasehold.tgz && rm /leasehold.tgz \
  && install --directory --owner=node --mode=700 /state
USER node
ENV LEASEHOLD_DIR=/state
VOLUME /state
HEALTHCHECK CMD node -e "fetch('http://127.0.0.1:4747/healthz').then(({ ok }) => process.exit(ok ? 0 : 1))"
CMD ["leasehold", "serve", "--port", "4747"]
