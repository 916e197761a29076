"""The paper "The Phase Is the Gradient", reproduced with phasegrad: studies, the runner, the page and its commands."""
