"""The lab: one page, complete in itself, that runs the physics in a browser.

`lab` writes and opens it; `scene` is a network or a model as the plain data that the page reads. The page's own files
lie in ``web``: ES modules without a framework and without a build step, which are put into one file as they are.
"""

from phasegrad.laboratory._page import lab, page_data
from phasegrad.laboratory._scene import scene

__all__ = ["lab", "page_data", "scene"]
