"""The homepage: the list of sites, their accounts and manuals, a calculator and a scratchpad."""
