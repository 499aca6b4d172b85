import argparse
import math
import os
import sys
import time
import zlib
from dataclasses import dataclass
