// Package manifestbench measures what it takes to read, judge, verify and crawl agent.json manifests, and to find an
// intent among many by its meaning. The crawl needs Postgres; its hosts are on this machine.
package manifestbench
