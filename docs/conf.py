"""Settings of Sphinx; ``docs/build.py`` assembles the pages and runs it."""

import placeopt

project = "placeopt"
author = "The placeopt authors"
copyright = author
release = version = placeopt.__version__

extensions = ["myst_parser", "sphinx.ext.autodoc", "sphinx.ext.napoleon"]
root_doc = "README"
html_theme = "furo"
html_title = f"placeopt {release}"

myst_enable_extensions = ["colon_fence"]
myst_heading_anchors = 3
default_role = "literal"  # `names` in docstrings
autodoc_typehints = "signature"
autodoc_typehints_format = "short"
autodoc_preserve_defaults = True
python_maximum_signature_line_length = 88
autodoc_member_order = "bysource"
napoleon_google_docstring = False
napoleon_use_rtype = False
suppress_warnings = ["myst.header", "misc.highlighting_failure"]
