"""A window of 800x600 that is painted anew at each timeout of a timer of 16 ms."""
import math

from PyQt5 import QtCore, QtGui, QtWidgets


class Window(QtWidgets.QWidget):
    tick = 0

    def paintEvent(self, event):
        self.tick += 1
        painter = QtGui.QPainter(self)
        painter.setRenderHint(QtGui.QPainter.Antialiasing)
        painter.fillRect(self.rect(), QtGui.QColor(20, 20, 40))
        for i in range(150):
            painter.setBrush(QtGui.QColor.fromHsv((i * 7 + self.tick) % 360, 200, 200))
            painter.drawEllipse(QtCore.QPointF(400 + 300 * math.sin(i + self.tick / 40), 300 + 250 * math.cos(i * 1.3)), 12, 12)


app = QtWidgets.QApplication([])
window = Window()
window.resize(800, 600)
window.show()
timer = QtCore.QTimer(timerType=QtCore.Qt.PreciseTimer)
timer.timeout.connect(window.update)
timer.start(16)
app.exec_()
