"""Equations as MathML, converted while the site is built: browsers draw it without a script or a network."""

from docutils import nodes
from docutils.utils.math import MathError
from docutils.utils.math.latex2mathml import tex2mathml
from sphinx.application import Sphinx
from sphinx.util import logging
from sphinx.writers.html5 import HTML5Translator

logger = logging.getLogger(__name__)


def inline(writer: HTML5Translator, node: nodes.math) -> None:
    writer.body.append(_converted(node, block=False))
    raise nodes.SkipNode


def displayed(writer: HTML5Translator, node: nodes.math_block) -> None:
    writer.body.append(f'<div class="equation">{_converted(node, block=True)}</div>\n')
    raise nodes.SkipNode


def _converted(node: nodes.Element, block: bool) -> str:
    tex = node.astext()
    try:
        return tex2mathml(tex, as_block=block)
    except MathError as error:
        logger.warning("no MathML for %r: %s", tex, error, location=node)
        return ""


def setup(app: Sphinx) -> dict[str, bool]:
    app.add_html_math_renderer("mathml", (inline, None), (displayed, None))
    app.config.html_math_renderer = "mathml"
    return {"parallel_read_safe": True, "parallel_write_safe": True}
