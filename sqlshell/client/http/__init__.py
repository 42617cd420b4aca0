"""One HTTP request: connection, proxy, TLS, time limits, retries, redirects, downloads, traces."""
