// Package manifestbench measures what it takes to read, judge, verify and crawl agent.json manifests, and to find an
// intent among many by its meaning. The crawl needs Postgres; its hosts are on this machine.
//
// Reading, judging, verifying and searching run on one processor and are measured in its time, because they wait for
// nothing. The crawl waits for hosts: it is compared with the time that the product's own politeness allows for the
// latencies and timeouts that the hosts have. Half of the hosts are dead, in the two ways that cost a crawler
// different time. Names are answered by a DNS server of this process, so that the guard against private addresses, and
// the looking up of names, are a part of what is measured.
package manifestbench
