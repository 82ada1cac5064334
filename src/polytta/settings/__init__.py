"""The one spelling of every setting: what users, files and records say, and what it means for a model."""

from polytta.settings.config import Config as Config
from polytta.settings.resolve import resolve as resolve
from polytta.settings.settings import Settings as Settings
