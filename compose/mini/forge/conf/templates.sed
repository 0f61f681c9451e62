# Changes of Pagure's templates, applied when the image is built.
# A new request starts with the project's default branch, which need not be called "master".
s/or 'master'/or (g.repo_obj | get_default_branch)/
# Replaces links to other hosts by links to local pages.
s#https://docs\.pagure\.org/[^"]*#/about#
s#https://www\.libravatar\.org/accounts/login/#/about#
# Handles addresses without a line number.
s/if (lines) {/if (lines.length) {/
