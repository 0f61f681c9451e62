# Changes of Pagure's templates, made when the image is built.
# The branch that a new request starts with is the project's own, which need not be called "master".
s/or 'master'/or (g.repo_obj | get_default_branch)/
# Help that is on another host.
s#https://docs\.pagure\.org/[^"]*#/about#
s#https://www\.libravatar\.org/accounts/login/#/about#
# An address that names no line.
s/if (lines) {/if (lines.length) {/
