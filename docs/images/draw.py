"""Draw the network that `HeMLGOPClassifier` grows on the digits, as docs/images/digits.svg (`preset=None`).

Run with: python docs/images/draw.py
"""

from pathlib import Path

from sklearn.datasets import load_digits
from sklearn.model_selection import train_test_split

from opgrow import HeMLGOPClassifier

X, y = load_digits(return_X_y=True)
X_train, X_test, y_train, y_test = train_test_split(X, y, test_size=0.4, stratify=y, random_state=0)
clf = HeMLGOPClassifier(preset=None, random_state=0).fit(X_train, y_train)
clf.plot().save(Path(__file__).with_name("digits.svg"))
print(clf.network_.topology(), clf.score(X_test, y_test))
