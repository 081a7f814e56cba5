"""What several test folders share: real hosts, a proxy that breaks links, waiting on conditions."""
